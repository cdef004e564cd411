#include "medium/block_medium.h"

#include <fcntl.h>
#include <cerrno>

namespace pawl {
namespace {

class BlockMedium final : public NamedMedium {
 public:
  using NamedMedium::NamedMedium;

  MediumFile& base() override { return base_file(); }

 private:
  // Past the page cache, where the file system can.
  Result<std::unique_ptr<MediumFile>> open_side_file(const std::string& name) override {
    Descriptor side(::open(name.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT));
    if (!side.valid()) side.reset(::open(name.c_str(), O_RDWR | O_CLOEXEC));
    if (!side.valid()) return Status::from_errno(errno, "cannot open " + journal_path() + " again");
    auto file = std::make_unique<DescriptorFile>(std::move(side), journal_path());
    file->write_only_with(writers_lock());
    return std::unique_ptr<MediumFile>(std::move(file));
  }
};

}  // namespace

std::unique_ptr<Medium> make_block_medium(NamedFile file) {
  return std::make_unique<BlockMedium>(std::move(file));
}

Result<std::unique_ptr<Medium>> open_block_medium(int descriptor) {
  auto file = open_named_file(descriptor);
  if (!file.ok()) return file.status();
  return make_block_medium(std::move(file.value()));
}

Result<std::unique_ptr<Medium>> open_block_medium(const std::string& path, bool read_only) {
  auto file = open_named_file(path, read_only);
  if (!file.ok()) return file.status();
  return make_block_medium(std::move(file.value()));
}

}  // namespace pawl
