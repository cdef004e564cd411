#include "medium/open_medium.h"

#include "medium/block_medium.h"
#include "medium/persistent_medium.h"

namespace pawl {
namespace {

Result<std::unique_ptr<Medium>> open_as(Result<NamedFile> file, MediumKind kind) {
  if (!file.ok()) return file.status();
  // What is only looked at is read as any file.
  const bool as_memory = !file.value().read_only &&
                         (kind == MediumKind::memory ||
                          (kind == MediumKind::automatic && is_in_persistent_memory(file.value())));
  if (as_memory) return make_persistent_medium(file.value());
  return make_block_medium(std::move(file.value()));
}

}  // namespace

Result<std::unique_ptr<Medium>> open_medium(int descriptor, MediumKind kind) {
  return open_as(open_named_file(descriptor), kind);
}

Result<std::unique_ptr<Medium>> open_medium(const std::string& path, bool read_only,
                                            MediumKind kind) {
  return open_as(open_named_file(path, read_only), kind);
}

}  // namespace pawl
