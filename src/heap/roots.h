// Where a program finds its data again: the root, and roots by name.  Callers hold the heap's lock.
#pragma once

#include <string_view>

#include "heap/arena.h"

namespace pawl {

class Roots {
 public:
  explicit Roots(Arena& arena) : arena_(arena) {}

  Result<char*> root() const;
  // EINVAL when it leads out of the heap.
  Status set_root(char* address);

  struct Named {
    char* address;
    std::uint64_t type_tag;
  };
  // ENOENT when there is none; EINVAL when no root can have such a name.
  Result<Named> named(std::string_view name) const;
  // A null address removes it (ENOENT when there is none).
  Status set_named(std::string_view name, Named to);

  std::uint32_t count() const;
  // What stands in a slot can be believed.
  Status check(std::uint32_t slot) const;

 private:
  heap_format::NamedRoot* find(std::string_view name) const;

  Arena& arena_;
};

// The name that stands in a slot; empty when the slot is free.
std::string_view name_of(const heap_format::NamedRoot& root);

}  // namespace pawl
