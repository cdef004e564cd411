#include "medium/persistent_medium.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <algorithm>
#include <bit>
#include <cerrno>

#include "medium/persistent_copy.h"
#include "medium/persistent_file.h"

namespace pawl {
namespace {

// A file grows within its window; addresses cost nothing, but where they are bounded
// (RLIMIT_AS) less will do.
constexpr std::uint64_t kWindowBytesWanted = std::uint64_t{256} << 30;
constexpr std::uint64_t kWindowBytesMin = std::uint64_t{64} << 20;
constexpr std::uint64_t kWindowOfFile = 4;  // times the file's size, when that is more
// All windows together take a part of a process's 2^47 addresses: mappings, and heaps above all,
// have to have theirs.  So one gets at most such a share of what is left of that part.
constexpr std::uint64_t kWindowsBytesMax = std::uint64_t{32} << 40;
constexpr std::uint64_t kWindowShare = 64;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 44;  // of 2^47 that a process has

// Flags of a mapping that stores go through to the file.
constexpr int kSynchronous = MAP_SHARED_VALIDATE | MAP_SYNC;
constexpr int kProcessOnly = MAP_SHARED;

std::uint64_t window_bytes_wanted(std::uint64_t file_bytes) {
  const std::uint64_t taken = std::min(MemoryWindow::bytes_owned(), kWindowsBytesMax);
  const std::uint64_t share = std::bit_floor((kWindowsBytesMax - taken) / kWindowShare);
  return std::max(std::clamp(share, kWindowBytesMin, kWindowBytesWanted),
                  std::bit_ceil(file_bytes) * kWindowOfFile);
}

Result<MemoryWindow> map_window(int descriptor, int flags, const std::string& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return FailedCall{errno, "cannot stat " + path};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > kFileBytesMax)
    return Status::failure(EFBIG, PAWL_ERROR_TOO_LARGE,
                           path +
                               " is too large to be mapped as memory; use "
                               "PAWL_MEDIUM=block");
  const std::uint64_t least = std::max(round_up(size, kPageBytes), kWindowBytesMin);
  std::uint64_t bytes = window_bytes_wanted(size);
  for (;;) {
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, descriptor, 0);
    if (at != MAP_FAILED) {
      // A dump of the process's memory would be as large as the file.
      ::madvise(at, bytes, MADV_DONTDUMP);
      return MemoryWindow::owned(static_cast<std::byte*>(at), bytes);
    }
    const bool is_too_much = errno == ENOMEM || errno == EOVERFLOW || errno == EFBIG;
    if (!is_too_much || bytes / 2 < least)
      return FailedCall{errno, "cannot map " + path + " as memory"};
    bytes /= 2;
  }
}

bool can_map_synchronously(int descriptor) {
  void* const at = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, kSynchronous, descriptor, 0);
  if (at == MAP_FAILED) return false;
  ::munmap(at, kPageBytes);
  return true;
}

bool is_on_tmpfs(int descriptor) {
  struct statfs file_system{};
  return ::fstatfs(descriptor, &file_system) == 0 && file_system.f_type == TMPFS_MAGIC;
}

class PersistentMedium final : public NamedMedium {
 public:
  PersistentMedium(NamedFile file, MemoryWindow window, std::shared_ptr<PersistentMemory> memory,
                   int flags)
      : NamedMedium(std::move(file)),
        memory_(std::move(memory)),
        flags_(flags),
        base_(base_file(), std::move(window), memory_, path()) {}

  MediumFile& base() override { return base_; }
  std::uint64_t block_bytes() const override { return kMemoryLineBytes; }
  // A commit makes no system call, but for these now and then.
  Status check_before_commit() override { return is_look_due() ? follow_rights(true) : Status{}; }
  Status publish_journal() override {
    memory_->fence();
    return NamedMedium::publish_journal();
  }
  Result<JournalFile> acquire_journal(bool create) override {
    auto acquired = NamedMedium::acquire_journal(create);
    // Until now there may have been another writer.
    if (acquired.ok()) base_.forget();
    return acquired;
  }

 private:
  Result<std::unique_ptr<MediumFile>> open_side_file(const std::string& name) override {
    Descriptor side(::open(name.c_str(), O_RDWR | O_CLOEXEC));
    if (!side.valid()) return FailedCall{errno, "cannot open " + journal_path() + " again"};
    auto window = map_window(side.get(), flags_, journal_path());
    if (!window.ok()) return window.status();
    auto beneath = std::make_unique<DescriptorFile>(std::move(side), journal_path());
    beneath->write_only_with(writers_lock(), writers_notice());
    return std::unique_ptr<MediumFile>(std::make_unique<PersistentFile>(
        std::move(beneath), std::move(window.value()), memory_, journal_path()));
  }
  void attributes_changed() override {
    NamedMedium::attributes_changed();
    base_.changed_beneath();
  }

  const std::shared_ptr<PersistentMemory> memory_;
  const int flags_;
  PersistentFile base_;
};

}  // namespace

bool is_in_persistent_memory(const NamedFile& file) {
  return memory_can_survive_power_loss() && can_map_synchronously(file.descriptor.get());
}

Result<std::unique_ptr<Medium>> make_persistent_medium(NamedFile& file) {
  const int descriptor = file.descriptor.get();
  int flags = kSynchronous;
  if (!is_in_persistent_memory(file)) {
    if (!is_on_tmpfs(descriptor)) {
      return Status::failure(
          EOPNOTSUPP, PAWL_ERROR_NOT_PERSISTENT_MEMORY,
          file.path + " is not in persistent memory: its file system cannot map it with MAP_SYNC" +
              (memory_can_survive_power_loss() ? "" : ", or this processor is not supported") +
              ". Use PAWL_MEDIUM=auto or block; or put the file on a file system mounted with dax; "
              "or, where commits need only survive the process, on a tmpfs such as /dev/shm");
    }
    flags = kProcessOnly;
  }
  auto options = PersistentMemoryOptions::from_environment();
  if (!options.ok()) return options.status();
  auto memory = make_persistent_memory(options.value());
  if (!memory.ok()) return memory.status();
  auto window = map_window(descriptor, flags, file.path);
  if (!window.ok()) return window.status();
  return std::unique_ptr<Medium>(std::make_unique<PersistentMedium>(
      std::move(file), std::move(window.value()), std::move(memory.value()), flags));
}

Result<std::unique_ptr<Medium>> open_persistent_medium(int descriptor) {
  auto file = open_named_file(descriptor);
  if (!file.ok()) return file.status();
  return make_persistent_medium(file.value());
}

Result<std::unique_ptr<Medium>> open_persistent_medium(const std::string& path) {
  auto file = open_named_file(path, false);
  if (!file.ok()) return file.status();
  return make_persistent_medium(file.value());
}

}  // namespace pawl
