// The ways by which the kernel and other processes store into a program's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pawl::kernel_stores {

inline constexpr std::size_t kPage = 4096;

// One way to store, made ready: descriptors are open, helpers run.
struct Kind {
  std::string name;
  // The fault tracker cannot see it, and docs/kernel-stores.md says so.
  bool beyond_fault_tracker = false;
  bool by_another_process = false;
  // Stores bytes that depend on `seed` into the page at `page`, or fails and stores none.
  std::function<bool(char* page, std::uint32_t seed)> store;
};

// Makes what this machine permits ready; `refused` says which kinds are not, and why.  `directory`
// is for a file to read from.  They hold descriptors and a process until they are dropped.
std::vector<Kind> make_kinds(const std::string& directory, std::vector<std::string>& refused);

}  // namespace pawl::kernel_stores
