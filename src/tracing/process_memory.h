// Reads the memory of a process that stands still.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace pawl::tracing {

// False when not all of it is readable.
bool read_memory(pid_t thread, std::uint64_t address, void* into, std::size_t length);

template <class T>
std::optional<T> read_object(pid_t thread, std::uint64_t address) {
  T object{};
  if (!read_memory(thread, address, &object, sizeof(object))) return std::nullopt;
  return object;
}

// Up to the first zero byte; nothing when none is readable within PATH_MAX bytes.
std::optional<std::string> read_path(pid_t thread, std::uint64_t address);

}  // namespace pawl::tracing
