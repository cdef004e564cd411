#include "stm/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cerrno>

#include "medium/descriptor.h"

namespace pawl::bench::stm {
namespace {

// Free under address randomisation.
constexpr std::uintptr_t kAddress = 0x0c00'0000'0000;
constexpr std::uint64_t kMagic = 0x314d'5453'4c57'4150;  // "PAWLSTM1"

// At the beginning; the rest of its page is unused.
struct RegionHeader {
  std::uint64_t magic;  // stored last
  std::uint64_t bytes;
};

Region* the_one = nullptr;

std::span<LogOfThread> logs_of(std::byte* region) {
  return {reinterpret_cast<LogOfThread*>(region + 4096), kThreadsMax};
}

}  // namespace

Region* the_region() { return the_one; }
void set_the_region(Region* region) { the_one = region; }

LogOfThread& Region::log(std::size_t index) const {
  PAWL_ASSERT(index < kThreadsMax);
  return logs_of(begin_)[index];
}

Result<std::size_t> Region::recover_bytes(std::span<std::byte> region, PersistentMemory& memory) {
  if (region.size() < kDataOffset)
    return Status::failure(EUCLEAN, "too short for a region of transactions");
  const auto& header = *reinterpret_cast<const RegionHeader*>(region.data());
  if (header.magic != kMagic || header.bytes != region.size())
    return Status::failure(EUCLEAN, "no region of transactions, or one that was cut");
  return recover(region, logs_of(region.data()), memory);
}

Result<std::unique_ptr<Region>> Region::open(const std::string& path, std::size_t data_bytes) {
  auto how = PersistentMemoryOptions::from_environment();
  if (!how.ok()) return how.status();
  auto memory = make_persistent_memory(how.value());
  if (!memory.ok()) return memory.status();
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0)
    return FailedCall{errno, "cannot open " + path};
  const std::size_t bytes = kDataOffset + data_bytes;
  const bool is_new = status.st_size == 0;
  if (!is_new && static_cast<std::size_t>(status.st_size) != bytes)
    return Status::failure(EINVAL, path + " is of another size");
  if (const int error = is_new ? ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) : 0;
      error != 0)
    return FailedCall{error, "no space for " + path};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
  void* const at = ::mmap(reinterpret_cast<void*>(kAddress), bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED_NOREPLACE, file.get(), 0);
  if (at == MAP_FAILED) return FailedCall{errno, "cannot map " + path};
  auto* const begin = static_cast<std::byte*>(at);
  std::unique_ptr<Region> region(new Region(begin, bytes, std::move(memory.value())));
  auto& header = *reinterpret_cast<RegionHeader*>(begin);
  // What was interrupted while it was made has no magic, and nothing of the program.
  if (header.magic == 0) {
    const RegionHeader made{kMagic, bytes};
    region->memory().copy(reinterpret_cast<std::byte*>(&header.bytes),
                          std::as_bytes(std::span(&made.bytes, 1)));
    region->memory().fence();
    region->memory().copy(reinterpret_cast<std::byte*>(&header.magic),
                          std::as_bytes(std::span(&made.magic, 1)));
    region->memory().fence();
    return region;
  }
  auto recovered = recover_bytes({begin, bytes}, region->memory());
  if (!recovered.ok()) return recovered.status();
  region->recovered_ = recovered.value();
  return region;
}

Region::~Region() {
  if (the_one == this) the_one = nullptr;
  ::munmap(begin_, bytes_);
}

}  // namespace pawl::bench::stm
