// Who may read or write a file: owner, mode, and the access control list where it has one, of which
// the group's bits in the mode are only the bound.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl {

// `to` gets what `from` has, of these bits of the mode; never more, and meanwhile less.  Where the
// owner cannot be given, the caller stays it, and a list grants the owner and the group of `from`
// what they may do with that; where the group cannot be given it has no rights, and the others no
// more than the file's group; where the list cannot be given, neither has any.  The owner of `to`
// has the bits `kept` in any case.
// `name` is that of `to`.
Status adopt_permissions(int from, int to, mode_t bits, const std::string& name, mode_t kept = 0);

// One line of an access control list, as the kernel has it.
struct AccessEntry {
  std::uint16_t tag = 0;
  std::uint16_t rights = 0;
  std::uint32_t id = 0;
  bool operator==(const AccessEntry&) const = default;
};

// Empty: the file has none.
Result<std::vector<AccessEntry>> access_list_of(int file, const std::string& name);

// Who may read and write a file.
struct Rights {
  uid_t user = 0;
  gid_t group = 0;
  mode_t mode = 0;                // reading and writing only
  std::vector<AccessEntry> list;  // empty: the file has none, or the kernel does not ask it
  bool operator==(const Rights&) const = default;
};

Result<Rights> rights_of_file(int file, const std::string& name);
// For a file with the user and the group of `one`: nobody may do with it what they may not do with
// both, as far as the modes say; with lists that differ, nobody but the user may do anything.
Rights common_rights(const Rights& one, const Rights& other);
// To a file with that user and group; meanwhile it grants less.
Status give_rights(int file, const Rights& rights, const std::string& name);

// False: the number by which the kernel shows all users (or groups) that have none in this user
// namespace, as those outside a container without root.  That two files have it says nothing.
bool is_shown_user(uid_t user);
bool is_shown_group(gid_t group);

// What the mode and the list of a file answer whoever asks for one right (ACL_READ, ACL_WRITE of
// <linux/posix_acl.h>), and is not its owner.  Of the groups that somebody is in, one that grants
// it is enough; where all that are named deny it, he is not one of the others.
struct Answers {
  std::map<uid_t, bool> users;
  std::map<gid_t, bool> groups;
  bool others = false;
  bool denies_a_group() const;
  bool grants_a_group() const;
};
Answers answers_of(const Rights& rights, std::uint16_t right);

enum class MayWrite { no, by_a_group, yes };  // by_a_group: if he is in one that may
MayWrite may_write(const Rights& rights, uid_t user);

// Somebody who has a right on the one file, and may not have it on the other; their owners aside.
struct Intruder {
  enum class Kind { anyone, group, user } kind;
  std::uint32_t id;
};
// Whether two files that show the same number for all hidden users, or groups, mean the same.
enum class HiddenIds { may_differ, are_the_same };
std::optional<Intruder> find_intruder(const Rights& one, const Rights& than, std::uint16_t right,
                                      HiddenIds hidden);

// Whether there is one, as far as can be told.
bool grants_more(int one, int than);

}  // namespace pawl
