// A library that the program opens calls the functions here as the program does, unless it was
// opened so that it finds libc's first.
#include "preload/interpose.h"

#include <dlfcn.h>

#include <atomic>

#include "preload/messages.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

std::atomic<bool> has_said_of_binding{false};
std::atomic<bool> has_said_of_namespaces{false};

int without_deep_binding(const char* call, int mode) {
  if ((mode & RTLD_DEEPBIND) != 0 && !has_said_of_binding.exchange(true)) {
    say(call,
        "RTLD_DEEPBIND is ignored: the library's calls on files that are mapped atomically would "
        "bypass Pawl");
  }
  return mode & ~RTLD_DEEPBIND;
}

// A handle of this library; null where it cannot be had.
void* own_handle() {
  static void* const handle = [] {
    Dl_info self{};
    return dladdr(&has_said_of_binding, &self) != 0
               ? real().dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD)
               : nullptr;
  }();
  return handle;
}

// By the C library's handle a program finds its functions past those here: it is given these
// instead of the ones that they stand in for.
[[gnu::noinline]] void* find_by_handle(void* handle, const char* name) noexcept {
  void* const found = real_dlsym()(handle, name);
  if (found == nullptr || own_handle() == nullptr) return found;
  void* const next = real_dlsym()(RTLD_NEXT, name);
  void* const own = found == next ? real_dlsym()(own_handle(), name) : nullptr;
  if (own != nullptr) return own;
  [[maybe_unused]] const char* const of_no_concern = dlerror();
  return found;
}

}  // namespace

// Where the caller is says what RTLD_NEXT and RTLD_DEFAULT find: a jump, as below.
PAWL_INTERPOSE void* dlsym(void* handle, const char* name) noexcept {
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return real_dlsym()(handle, name);
  return find_by_handle(handle, name);
}

// libc's dlopen() looks where the library of its caller says (DT_RUNPATH), and finds the caller by
// the return address.  So both of these end in a jump, and have nothing to clean up.

PAWL_INTERPOSE void* dlopen(const char* file, int mode) noexcept {
  return real().dlopen(file, without_deep_binding("dlopen", mode));
}

PAWL_INTERPOSE void* dlmopen(Lmid_t name_space, const char* file, int mode) noexcept {
  if (name_space != LM_ID_BASE && !has_said_of_namespaces.exchange(true)) {
    say("dlmopen",
        "a library in a namespace of its own has its own C library, and its calls bypass Pawl: it "
        "must not use files that are mapped atomically; open it with dlopen()");
  }
  return real().dlmopen(name_space, file, without_deep_binding("dlmopen", mode));
}

}  // namespace pawl::preload
