// What a restore takes besides the user's own rights, and how root lends it.
#pragma once

#include <fmt/core.h>
#include <sys/types.h>

#include <string>
#include <string_view>

namespace pawl::wsp {

// The beginning of a command line, up to pawl's verb; `groups` is setpriv(1)'s option for them.
inline std::string command_with_lent_right(uid_t user, gid_t group, std::string_view groups) {
  return fmt::format(
      "setpriv --reuid {} --regid {} {} --inh-caps +checkpoint_restore --ambient-caps "
      "+checkpoint_restore pawl",
      user, group, groups);
}

}  // namespace pawl::wsp
