// The medium for a file: which of the two kinds it stands on.
#pragma once

#include <memory>
#include <string>

#include "medium/medium.h"

namespace pawl {

enum class MediumKind { automatic = 0, block = 1, memory = 2 };

// As open_block_medium().  Automatic takes memory where the file can be mapped with MAP_SYNC.
// Memory takes tmpfs, too (open_persistent_medium() says what that promises), and is EOPNOTSUPP
// elsewhere.
Result<std::unique_ptr<Medium>> open_medium(int descriptor, MediumKind kind);
Result<std::unique_ptr<Medium>> open_medium(const std::string& path, bool read_only,
                                            MediumKind kind);

}  // namespace pawl
