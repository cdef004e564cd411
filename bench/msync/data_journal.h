// A file on ext4 mounted with data=journal, by way of a loop device.
#pragma once

#include <cstdint>
#include <string>

#include "msync/files.h"

namespace pawl::bench {

// Needs root, and some more than `bytes` in `directory`; throws Unavailable without.  File system
// and loop device go when the file is no longer in use, however the process ends.
File make_data_journal_file(const std::string& directory, std::uint64_t bytes);

}  // namespace pawl::bench
