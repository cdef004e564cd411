// The C border: what fails inside becomes errno and a text, and no exception passes.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "mapping/last_error.h"
#include "medium/status.h"

namespace pawl {

// The core does not throw on purpose; memory may run out.
template <class Call>
Status at_border(Call call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Status::failure(ENOMEM, "out of memory");
  } catch (const std::exception& exception) {
    return Status::failure(EIO, exception.what());
  }
}

// 0, or -1 with errno and pawl_last_error().
template <class Call>
int finish(Call call) noexcept {
  const Status status = at_border(std::move(call));
  if (status.ok()) return 0;
  set_last_error(status);
  return -1;
}

inline Status invalid(std::string text) { return Status::failure(EINVAL, std::move(text)); }

}  // namespace pawl
