// Who may read or write a file: owner, mode, and the access control list where it has one, of which
// the group's bits in the mode are only the bound.
#pragma once

#include <sys/stat.h>

#include <set>
#include <string>

#include "medium/status.h"

namespace pawl {

// `to` gets what `from` has, of these bits of the mode; never more, and meanwhile less.  Where the
// owner cannot be given, the caller stays it, and a list grants the owner and the group of `from`
// what they may do with that; where the group cannot be given it has no rights, and the others no
// more than the file's group; where the list cannot be given, neither has any.  The owner of `to`
// has the bits `kept` in any case.
// `name` is that of `to`.
Status adopt_permissions(int from, int to, mode_t bits, const std::string& name, mode_t kept = 0);

// False: the number by which the kernel shows all users (or groups) that have none in this user
// namespace, as those outside a container without root.  That two files have it says nothing.
bool is_shown_user(uid_t user);
bool is_shown_group(gid_t group);

// Who may write a file besides its owner.
struct Writers {
  std::set<uid_t> users;
  std::set<gid_t> groups;
  bool all_others = false;
};

Result<Writers> writers_of(int file, const struct stat& status, const std::string& name);

// Whether somebody who may not have the one has rights on the other, as far as the mode and the
// list say.
bool grants_more(int one, int than);

}  // namespace pawl
