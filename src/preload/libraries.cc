// A library that the program opens calls the functions here as the program does, unless it was
// opened so that it finds libc's first.
#include "preload/interpose.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <atomic>

#include "preload/inside.h"
#include "preload/messages.h"
#include "preload/real.h"
#include "preload/symbol_table.h"

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

// A handle of this library; null where it cannot be had.  Not by a static initialiser: one thread
// would hold its guard and wait for the loader's lock, which another holds that comes here from the
// constructor of a library.
void* own_handle() {
  constinit static std::atomic<void*> kept{nullptr};
  void* handle = kept.load();
  Dl_info self{};
  if (handle == nullptr && dladdr(&has_said_of_binding, &self) != 0) {
    handle = real().dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    kept.store(handle);
  }
  return handle;
}

// This library's own function of that name, or null: its handle finds those of its dependencies,
// too.
void* own_function(const char* name) {
  void* const handle = own_handle();
  void* const found = handle == nullptr ? nullptr : real_dlsym()(handle, name);
  return is_own_code(found) ? found : nullptr;
}

bool is_in_c_library(const void* address) {
  Dl_info here{};
  Dl_info there{};
  return dladdr(address, &here) != 0 &&
         dladdr(reinterpret_cast<const void*>(&gnu_get_libc_version), &there) != 0 &&
         here.dli_fbase == there.dli_fbase;
}

// By the C library's handle, or by a version, a program finds its functions past those here: it is
// given these instead of the ones that they stand in for, which another library may stand before as
// well.
void* own_instead_of(void* found, const char* name) {
  if (found == nullptr) return found;
  void* const own = own_function(name);
  const bool stands_in =
      own != nullptr && (found == real_dlsym()(RTLD_NEXT, name) || is_in_c_library(found));
  [[maybe_unused]] const char* const of_no_concern = dlerror();
  return stands_in ? own : found;
}

[[gnu::noinline]] void* find_by_handle(void* handle, const char* name) noexcept {
  return own_instead_of(real_dlsym()(handle, name), name);
}

[[gnu::noinline]] void* find_version(void* handle, const char* name, const char* version) noexcept {
  return own_instead_of(real_dlvsym()(handle, name, version), name);
}

// True for the program, and libraries that are preloaded before this one: RTLD_NEXT finds the
// functions here for them.  None of these is ever unloaded.
bool stands_before_here(const void* caller) noexcept {
  Dl_info info{};
  void* library = nullptr;
  if (dladdr1(caller, &info, &library, RTLD_DL_LINKMAP) == 0) return false;
  const link_map* before = own_library();
  while (before != nullptr && before != library) before = before->l_prev;
  return before != nullptr && before != own_library();
}

}  // namespace

// Where the caller is says what RTLD_NEXT and RTLD_DEFAULT find: a jump, as below.
PAWL_INTERPOSE void* dlsym(void* handle, const char* name) noexcept {
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return real_dlsym()(handle, name);
  return find_by_handle(handle, name);
}

// The functions here have no version, and stand in for all that libc's have.  What is not found
// from here for a caller elsewhere is found by a jump.
PAWL_INTERPOSE void* dlvsym(void* handle, const char* name, const char* version) noexcept {
  if ((handle == RTLD_NEXT && !stands_before_here(__builtin_return_address(0))) ||
      own_function(name) == nullptr)
    return real_dlvsym()(handle, name, version);
  return find_version(handle, name, version);
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
