// What the calls of locks and of conditions have alike.
#pragma once

#include <cerrno>
#include <cstdint>

#include "fase/file.h"
#include "fase/thread.h"
#include "mapping/last_error.h"

namespace pawl::fase {

// Leaves `text` for pawl_last_error(), and returns the number.
inline int refuse(int error_number, pawl_error code, const char* text) {
  set_last_error(Status::failure(error_number, code, text));
  return error_number;
}

// Of what lies in the window.
inline int check_usable(const Thread& thread) {
  if (is_forked_child())
    return refuse(EPERM, PAWL_ERROR_FORKED_CHILD,
                  "the file was opened before fork(2); the child cannot use it");
  if (thread.file() == nullptr)
    return refuse(EINVAL, PAWL_ERROR_CLOSED,
                  "the lock or condition is where files of failure-atomic sections are mapped, and "
                  "none is open");
  return 0;
}

inline std::uint32_t run_of(const Thread& thread) { return thread.file()->lock_word(); }

}  // namespace pawl::fase
