// Which of the loaded modules (the program and its libraries) mark their stores.
//
// The store tracker sees marked stores only.  Where no module has marks, every commit would be
// acknowledged and nothing would be stored: that tracker is refused there.
//
// A module marks its stores when it calls pawl_stored() or one of the wrappers pawl_stored_NAME():
// pawl-clang compiled it, or it marks by hand.  Both show in its relocations, which name each
// function of another module that it calls.  Who finds pawl_stored() with dlsym(3) has no such
// relocation, and calls it once before the mapping is made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "medium/status.h"

namespace pawl {

// What begins so is a mark, or a wrapper that marks.
inline constexpr std::string_view kMarkPrefix = "pawl_stored";

// Libraries that no compiler needs to mark: what they store for a program is marked by the
// wrappers that marked code calls instead (docs/snapshot-functions.md); and Pawl's own.  `name`
// may be a path.
bool is_wrapped_library(std::string_view name);

struct StoreModules {
  std::vector<std::string> marked;    // by their paths
  std::vector<std::string> unmarked;  // without those that are wrapped
  bool marks_by_hand = false;         // pawl_stored() was called, by whomever
};
// Of this process, as it is now.
StoreModules find_store_modules();

// EOPNOTSUPP when nothing in this process marks its stores; names the modules.
Status check_stores_are_marked();

}  // namespace pawl
