// The structures of examples/structures as the crash simulator sees them: what can be done to each,
// what it holds, and what a plain model of it would.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "structures/structures.h"

namespace pawl::test {

struct Operation {
  std::uint32_t kind = 0;  // below Subject::kinds
  std::uint64_t key = 0;
  std::uint64_t value = 0;
};

using Contents = std::vector<std::uint64_t>;

struct Subject {
  const char* name;
  // 0 puts and 1 takes or removes; those with a third, which gets, have pairs of key and value.
  std::uint32_t kinds;
  // The structure, as the file's root; nullptr when there is no memory.
  void* (*make)(pawl_fase* file);
  // Returns what was taken from stack or queue, else 0.
  std::uint64_t (*operate)(pawl_fase* file, void* structure, const Operation& operation);
  // What it holds, in order.  Throws std::runtime_error when it is no such structure any more.
  Contents (*read)(void* structure);
  // The same operation on what it holds.
  void (*model)(Contents& contents, const Operation& operation);
};

inline bool has_pairs(const Subject& subject) { return subject.kinds == 3; }

// All, or the one of that name.  Throws std::runtime_error when there is none.
std::vector<Subject> subjects(const std::string& name);

}  // namespace pawl::test
