#include "medium/open_medium.h"

#include <cerrno>

#include "medium/block_medium.h"

namespace pawl {
namespace {

Status no_memory_medium() {
  return Status::failure(EOPNOTSUPP, "persistent memory is not supported here");
}

}  // namespace

Result<std::unique_ptr<Medium>> open_medium(int descriptor, MediumKind kind) {
  if (kind == MediumKind::memory) return no_memory_medium();
  return open_block_medium(descriptor);
}

Result<std::unique_ptr<Medium>> open_medium(const std::string& path, bool read_only,
                                            MediumKind kind) {
  if (kind == MediumKind::memory) return no_memory_medium();
  return open_block_medium(path, read_only);
}

}  // namespace pawl
