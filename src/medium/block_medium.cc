#include "medium/block_medium.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <cerrno>

namespace pawl {
namespace {

// btrfs, also beneath an overlay, which shows the attribute that a journal gets there.  While
// another process reads the journal, a flush after a write past the page cache may answer EIO: the
// pages that were read could not be dropped.  Nothing is lost, but no flush tells that from a disk
// that fails.
bool is_failed_by_readers(int side) {
  struct statfs file_system{};
  if (::fstatfs(side, &file_system) == 0 && file_system.f_type == BTRFS_SUPER_MAGIC) return true;
  int attributes = 0;
  return ::ioctl(side, FS_IOC_GETFLAGS, &attributes) == 0 && (attributes & FS_NOCOW_FL) != 0;
}

class BlockMedium final : public NamedMedium {
 public:
  using NamedMedium::NamedMedium;

  MediumFile& base() override { return base_file(); }

 private:
  // Past the page cache, where the file system can.
  Result<std::unique_ptr<MediumFile>> open_side_file(const std::string& name) override {
    Descriptor side(::open(name.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT));
    if (!side.valid() || is_failed_by_readers(side.get()))
      side.reset(::open(name.c_str(), O_RDWR | O_CLOEXEC));
    if (!side.valid()) return FailedCall{errno, "cannot open " + journal_path() + " again"};
    auto file = std::make_unique<DescriptorFile>(std::move(side), journal_path());
    file->write_only_with(writers_lock(), writers_notice());
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
