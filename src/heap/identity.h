// What a heap records of the program that made it, and whether another may open it.
#pragma once

#include <string>

#include "heap/arena.h"
#include "heap/format.h"
#include "medium/status.h"

namespace pawl {

heap_format::Identity make_identity(std::uint64_t address, std::uint64_t size_bytes_max,
                                    const std::string& layout);

// Whether it is a heap's (EINVAL), of this version, of this machine and layout (ENOTSUP), and
// undamaged (EUCLEAN).
Status check_identity(const heap_format::Identity& identity, const std::string& layout,
                      const std::string& path);

// Whether a heap's file can be so large; EUCLEAN.
Status check_size(const heap_format::Identity& identity, std::uint64_t size_bytes,
                  const std::string& path);

std::string text_of(const std::array<char, heap_format::kTextBytes>& text);
void set_layout(heap_format::Identity& identity, const std::string& layout);

}  // namespace pawl
