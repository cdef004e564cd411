// Shared mappings of a file that the kernel made: what is stored through them passes Pawl by, and
// what Pawl commits shows in them late.
#pragma once

#include "preload/interpose.h"

#include <sys/stat.h>

#include <optional>

#include "medium/address_range.h"
#include "medium/status.h"

namespace pawl::preload {

// A shared mapping of the file in this process, which has no window of it; one that lies within
// `replaced` does not count.  Empty: there is none.
Result<std::optional<AddressRange>> find_kernel_mapping(const struct stat& file,
                                                        const AddressRange& replaced);

}  // namespace pawl::preload
