#include "support/memory_medium.h"

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "medium/descriptor.h"
#include "medium/memory_functions.h"

namespace pawl::test {
namespace {

const std::string kDirectory = "/memory/";
constexpr FileIdentity kIdentity{.inode = 1, .birth_time_ns = 1};

// The bytes of a file in pages.
class PagesFile : public MediumFile {
 public:
  PagesFile(Content content, std::uint64_t bytes_max)
      : content_(std::move(content)), bytes_max_(bytes_max) {}

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    const std::lock_guard lock(mutex_);
    content_.read(offset, into);
    return {};
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    PAWL_TRY(check_room(offset, from.size()));
    const std::lock_guard lock(mutex_);
    content_.write(offset, from);
    return {};
  }
  Status flush() override { return {}; }
  Result<std::uint64_t> size() override {
    const std::lock_guard lock(mutex_);
    return content_.size();
  }
  Status resize(std::uint64_t size_bytes) override {
    PAWL_TRY(check_room(size_bytes, 0));
    const std::lock_guard lock(mutex_);
    content_.resize(size_bytes);
    return {};
  }
  Status reserve(std::uint64_t offset, std::uint64_t length) override {
    return check_room(offset, length);
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override { return zero(offset, length); }
  Status zero(std::uint64_t offset, std::uint64_t length) override {
    const std::lock_guard lock(mutex_);
    content_.zero(offset, length);
    return {};
  }
  // Nothing is known to be there: every commit asks for its space.
  Result<std::uint64_t> allocated_prefix_bytes() override { return std::uint64_t{0}; }

  Content content() const {
    const std::lock_guard lock(mutex_);
    return content_;
  }

 private:
  Status check_room(std::uint64_t offset, std::uint64_t length) const {
    if (offset <= bytes_max_ && length <= bytes_max_ - offset) return {};
    return Status::failure(ENOSPC, "no space left on the disk in memory");
  }

  mutable std::mutex mutex_;
  Content content_;
  const std::uint64_t bytes_max_;
};

std::unique_ptr<DescriptorFile> memory_file(const Content& content) {
  Descriptor descriptor(::memfd_create("pawl-memory-disk", MFD_CLOEXEC));
  if (!descriptor.valid()) throw std::runtime_error("cannot make a memory file (memfd_create)");
  auto file = std::make_unique<DescriptorFile>(std::move(descriptor), kDirectory + "file");
  std::vector<std::byte> bytes(content.size());
  content.read(0, bytes);
  if (!file->write(0, bytes).ok()) throw std::runtime_error("cannot fill a memory file");
  return file;
}

// The bytes of a file in a memory file that is mapped, beyond its end, too: as far as it may grow.
class MappedFile final : public MediumFile {
 public:
  MappedFile(const Content& content, std::uint64_t bytes_max)
      : file_(memory_file(content)), bytes_max_(bytes_max) {
    address_ = ::mmap(nullptr, kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      file_->descriptor(), 0);
    if (address_ == MAP_FAILED) throw std::runtime_error("cannot map a memory file");
  }
  ~MappedFile() override { ::munmap(address_, kWindowBytes); }

  static constexpr std::size_t kWindowBytes = std::size_t{1} << 30;

  int descriptor() const { return file_->descriptor(); }
  const std::byte* in_place() const override { return static_cast<const std::byte*>(address_); }

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    return file_->read(offset, into);
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    PAWL_TRY(check_room(offset, from.size()));
    return file_->write(offset, from);
  }
  Status flush() override { return {}; }
  Result<std::uint64_t> size() override { return file_->size(); }
  Status resize(std::uint64_t size_bytes) override {
    PAWL_TRY(check_room(size_bytes, 0));
    return file_->resize(size_bytes);
  }
  Status reserve(std::uint64_t offset, std::uint64_t length) override {
    PAWL_TRY(check_room(offset, length));
    return file_->reserve(offset, length);
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override {
    return file_->punch(offset, length);
  }
  Status zero(std::uint64_t offset, std::uint64_t length) override {
    return file_->zero(offset, length);
  }
  Result<std::uint64_t> allocated_prefix_bytes() override { return std::uint64_t{0}; }

 private:
  Status check_room(std::uint64_t offset, std::uint64_t length) const {
    const std::uint64_t bytes_max = std::min<std::uint64_t>(bytes_max_, kWindowBytes);
    if (offset <= bytes_max && length <= bytes_max - offset) return {};
    return Status::failure(ENOSPC, "no space left on the disk in memory");
  }

  const std::unique_ptr<DescriptorFile> file_;
  const std::uint64_t bytes_max_;
  void* address_;
};

// Another name for a file that somebody else owns.
class SharedFile final : public MediumFile {
 public:
  explicit SharedFile(std::shared_ptr<MediumFile> file) : file_(std::move(file)) {}

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    return file_->read(offset, into);
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    return file_->write(offset, from);
  }
  Status flush() override { return file_->flush(); }
  Result<std::uint64_t> size() override { return file_->size(); }
  Status resize(std::uint64_t size_bytes) override { return file_->resize(size_bytes); }
  Status reserve(std::uint64_t offset, std::uint64_t length) override {
    return file_->reserve(offset, length);
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override {
    return file_->punch(offset, length);
  }
  Status zero(std::uint64_t offset, std::uint64_t length) override {
    return file_->zero(offset, length);
  }
  const std::byte* in_place() const override { return file_->in_place(); }
  Result<std::uint64_t> allocated_prefix_bytes() override {
    return file_->allocated_prefix_bytes();
  }

 private:
  std::shared_ptr<MediumFile> file_;
};

std::shared_ptr<MediumFile> journal_side(Content content, const MemoryDiskOptions& options) {
  if (options.backing == Backing::mapped)
    return std::make_shared<MappedFile>(content, options.file_bytes_max);
  return std::make_shared<PagesFile>(std::move(content), options.file_bytes_max);
}

Content content_of(MediumFile& file) {
  const auto* const pages = dynamic_cast<const PagesFile*>(&file);
  return pages != nullptr ? pages->content() : Content::of(file);
}

}  // namespace

// Holds the journal, and lets go of it when its medium goes.
class MemoryDisk::DiskMedium final : public Medium {
 public:
  explicit DiskMedium(MemoryDisk& disk) : disk_(disk) {}
  ~DiskMedium() override { abandon(); }

  MediumFile& base() override { return *disk_.base_; }
  FileIdentity identity() const override { return kIdentity; }
  const std::string& path() const override { return disk_.path_; }
  const std::string& journal_path() const override { return disk_.journal_path_; }
  std::uint64_t block_bytes() const override { return disk_.options_.block_bytes; }

  Result<JournalFile> acquire_journal(bool create) override {
    const std::lock_guard lock(disk_.mutex_);
    if (disk_.journal_is_held_ && !holds_)
      return Status::failure(EBUSY, disk_.path_ + " is mapped atomically by another writer");
    const bool is_new = disk_.journal_ == nullptr;
    if (is_new && !create) return Status::failure(ENOENT, disk_.path_ + " has no journal");
    side_ = is_new ? journal_side({}, disk_.options_) : disk_.journal_;
    disk_.journal_is_held_ = holds_ = true;
    return JournalFile{std::make_unique<SharedFile>(side_), is_new};
  }
  Status publish_journal() override {
    const std::lock_guard lock(disk_.mutex_);
    if (disk_.journal_ != nullptr && disk_.journal_ != side_)
      return Status::failure(EEXIST, "cannot name the journal " + disk_.journal_path_);
    disk_.journal_ = side_;
    return {};
  }
  Result<std::unique_ptr<MediumFile>> read_journal() override {
    const std::lock_guard lock(disk_.mutex_);
    if (disk_.journal_ == nullptr) return Status::failure(ENOENT, disk_.path_ + " has no journal");
    return std::unique_ptr<MediumFile>(std::make_unique<SharedFile>(disk_.journal_));
  }
  Status remove_journal() override {
    const std::lock_guard lock(disk_.mutex_);
    if (disk_.journal_ == side_) disk_.journal_.reset();
    return {};
  }

  bool can_mark() const override { return disk_.options_.can_mark; }
  Result<std::optional<Mark>> mark() override {
    const std::lock_guard lock(disk_.mutex_);
    return disk_.mark_;
  }
  Status set_mark(const Mark& mark) override {
    const std::lock_guard lock(disk_.mutex_);
    if (disk_.options_.can_mark) disk_.mark_ = mark;
    return {};
  }
  Status clear_mark() override {
    const std::lock_guard lock(disk_.mutex_);
    disk_.mark_.reset();
    return {};
  }

  Result<std::unique_ptr<Medium>> open_sibling(const std::string& name) override {
    if (disk_.options_.open_sibling == nullptr) return Medium::open_sibling(name);
    return disk_.options_.open_sibling(name);
  }
  Result<char*> map_private(void* address, std::size_t length, int protection, int flags,
                            std::uint64_t offset) override {
    int descriptor = -1;
    if (const auto* const file = dynamic_cast<const DescriptorFile*>(disk_.base_.get()))
      descriptor = file->descriptor();
    if (const auto* const file = dynamic_cast<const MappedFile*>(disk_.base_.get()))
      descriptor = file->descriptor();
    if (descriptor < 0)
      return Status::failure(ENODEV, "only a disk backed by a memory file can be mapped");
    void* const at = memory::map(address, length, protection, MAP_PRIVATE | flags, descriptor,
                                 static_cast<off_t>(offset));
    if (at == MAP_FAILED) return FailedCall{errno, "cannot map " + disk_.path_};
    return static_cast<char*>(at);
  }
  void abandon() {
    const std::lock_guard lock(disk_.mutex_);
    if (holds_) disk_.journal_is_held_ = holds_ = false;
  }

 private:
  MemoryDisk& disk_;
  std::shared_ptr<MediumFile> side_;
  bool holds_ = false;
};

MemoryDisk::MemoryDisk(StoredDisk state, const MemoryDiskOptions& options)
    : options_(options),
      path_(kDirectory + options.name),
      journal_path_(path_ + ".pawl"),
      mark_(std::move(state.mark)) {
  if (options_.backing == Backing::memory_file)
    base_ = memory_file(state.base);
  else if (options_.backing == Backing::mapped)
    base_ = std::make_unique<MappedFile>(state.base, MappedFile::kWindowBytes);
  else
    base_ = std::make_unique<PagesFile>(std::move(state.base), options_.file_bytes_max);
  if (state.journal.has_value()) journal_ = journal_side(std::move(*state.journal), options_);
}

MemoryDisk::~MemoryDisk() = default;

std::unique_ptr<Medium> MemoryDisk::open() { return std::make_unique<DiskMedium>(*this); }

StoredDisk MemoryDisk::state() const {
  const std::lock_guard lock(mutex_);
  StoredDisk state{content_of(*base_), mark_, {}};
  if (journal_ != nullptr) state.journal = content_of(*journal_);
  return state;
}

}  // namespace pawl::test
