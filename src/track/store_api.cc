// pawl_stored(), which compiled programs call.
#include "pawl/store.h"

#include <dlfcn.h>

#include "medium/spin_lock.h"
#include "track/fault_table.h"
#include "track/stated_stores.h"
#include "track/store_marks.h"
#include "track/tracker.h"

namespace {

__attribute__((noinline)) void open_pages(const void* address, size_t length) noexcept {
  pawl::StatedStores::note(address, length);
  pawl::open_for_kernel_store(address, length);
}

// Without objects: see store_marks.cc, on marking.
void mark(const void* address, size_t length) noexcept {
  if (pawl::FaultTable::in_use()) {
    const pawl::KernelSignals before = pawl::hold_back_handlers();
    open_pages(address, length);
    pawl::change_signal_mask(SIG_SETMASK, before);
  } else {
    pawl::StatedStores::note(address, length);
  }
  if (pawl::StoreMarks::in_use()) return pawl::StoreMarks::mark(address, length);
  pawl::StoreMarks::note_early_call();
}

}  // namespace

#ifdef PAWL_PRELOAD_FACE

// A libpawl.so whose functions the program found by a handle may have mappings, too.
namespace {

using StoredFunction = void (*)(const void*, size_t);
StoredFunction next_stored = nullptr;

__attribute__((constructor)) void find_next_stored() {
  next_stored = reinterpret_cast<StoredFunction>(dlsym(RTLD_NEXT, "pawl_stored"));
}

}  // namespace

extern "C" PAWL_PUBLIC void pawl_stored(const void* address, size_t length) {
  mark(address, length);
  if (next_stored != nullptr) next_stored(address, length);
}

#else

extern "C" PAWL_PUBLIC void pawl_stored(const void* address, size_t length) {
  mark(address, length);
}

#endif
