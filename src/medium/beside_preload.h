// A libpawl beside that of the preload library.  Under `pawl run` a program that is linked with
// libpawl.so calls the preload library's functions of the same names; but one that has libpawl.a in
// itself, or finds functions by a handle (dlopen), calls others.  What those do to files, by calls
// that the preload library stands before, is not what the program does to them.
#pragma once

namespace pawl::beside_preload {

// What the preload library exports for this: calls work(argument), with the calling thread, and
// the threads that it starts meanwhile, working for Pawl.
using RunInside = void (*)(void (*work)(void*), void* argument);
inline constexpr const char* kRunInside = "pawl_preload_run_inside";

// Null where there is no preload library.
RunInside run_inside();

template <class Work>
void run(Work& work) {
  if (const RunInside inside = run_inside()) {
    inside([](void* argument) { (*static_cast<Work*>(argument))(); }, &work);
  } else {
    work();
  }
}

}  // namespace pawl::beside_preload
