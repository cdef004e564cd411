// Functions that transactions call through pointers: gcc makes a clone of each that a transaction
// may call, and each program or library registers a table of them when it is loaded.
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "stm/transaction.h"

namespace {

using pawl::bench::stm::refuse;

struct Clone {
  void* function;
  void* clone;
};

// Never destroyed: libraries take their tables back when the process ends.
struct Tables {
  std::shared_mutex mutex;
  std::vector<std::span<Clone>> of_libraries;  // each sorted by function
};
Tables& tables() {
  static auto* const the_tables = new Tables;
  return *the_tables;
}

void* clone_of(void* function) {
  Tables& all = tables();
  const std::shared_lock lock(all.mutex);
  for (const std::span<Clone> table : all.of_libraries) {
    const auto found =
        std::lower_bound(table.begin(), table.end(), function,
                         [](const Clone& clone, const void* at) { return clone.function < at; });
    if (found != table.end() && found->function == function) return found->clone;
  }
  return nullptr;
}

void* clone_or_refuse(void* function) {
  void* const clone = clone_of(function);
  if (clone == nullptr) refuse("a transaction calls a function that was not compiled for it");
  return clone;
}

}  // namespace

#define STM_PUBLIC __attribute__((visibility("default")))

extern "C" {

STM_PUBLIC void _ITM_registerTMCloneTable(void* table, std::size_t count) {
  const std::span<Clone> clones(static_cast<Clone*>(table), count);
  std::sort(clones.begin(), clones.end(),
            [](const Clone& one, const Clone& other) { return one.function < other.function; });
  const std::lock_guard lock(tables().mutex);
  tables().of_libraries.push_back(clones);
}

STM_PUBLIC void _ITM_deregisterTMCloneTable(void* table) {
  const std::lock_guard lock(tables().mutex);
  std::erase_if(tables().of_libraries,
                [&](const std::span<Clone> clones) { return clones.data() == table; });
}

STM_PUBLIC void* _ITM_getTMCloneOrIrrevocable(void* function) { return clone_or_refuse(function); }
STM_PUBLIC void* _ITM_getTMCloneSafe(void* function) { return clone_or_refuse(function); }

}  // extern "C"
