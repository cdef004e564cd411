// What to do about a journal that cannot be read whole, for the texts of failures.
#pragma once

#include <string>

namespace pawl::journal {

// Bytes that are copied into the file leave its journal in force, and the next recovery would put
// commits over them.
inline std::string restore_or_accept_loss() {
  return "To restore the file, rename a copy over it (to copy into it would mix old and new "
         "bytes), "
         "and put the copy's journal in the place of this one, or move this one away if the copy "
         "has none. To keep what can be read instead (commits may be lost), use 'pawl recover "
         "--accept-loss FILE'";
}

}  // namespace pawl::journal
