// What a restore takes that not every user has.
#pragma once

#include <cstddef>
#include <string>

#include "medium/status.h"

namespace pawl::wsp {

// Whether this process may give a program its numbers again (clone3(2), set_tid).  EPERM: it may
// not; the text says how root lets it restore what lies in the directory.
Status check_restore_rights(const std::string& directory);

// How root has this user restore that.
std::string lent_restore_command(const std::string& directory);

// "RLIMIT_NOFILE", and the option of prlimit(1) that sets it.
struct LimitName {
  const char* name;
  const char* option;
};
LimitName name_of_limit(std::size_t limit);

}  // namespace pawl::wsp
