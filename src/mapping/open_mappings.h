// The mappings that the C API made in this process, found by address or by file.
#pragma once

#include <cstddef>
#include <memory>

#include "mapping/mapping.h"

namespace pawl::open_mappings {

inline constexpr std::size_t kOpenMappingsMax = 256;

// ENFILE when there are kOpenMappingsMax already.
Status add(std::shared_ptr<Mapping> mapping, const Window& window);
// The mapping whose window holds the address; null when there is none.
std::shared_ptr<Mapping> find(const void* address, Window* window = nullptr);
// The mapping of the file open as `descriptor`; null when there is none.
std::shared_ptr<Mapping> find_file(int descriptor);
// Takes it out, so that one caller closes it.
std::shared_ptr<Mapping> remove(const void* address);

}  // namespace pawl::open_mappings
