#include "heap/closed_heap.h"

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "heap/address_space.h"
#include "heap/identity.h"
#include "journal/reader.h"

namespace pawl {
namespace {

using heap_format::Identity;

// Calls visit(offset, bytes) for what recovery would put into the file, and says how long that will
// be and how much of it stands in the file already.
struct Lengths {
  std::uint64_t base_bytes;
  std::uint64_t recovered_bytes;
};
Result<Lengths> replay_into(Medium& medium, const journal::Reader::Visit& visit) {
  auto size = medium.base().size();
  if (!size.ok()) return size.status();
  Lengths lengths{size.value(), size.value()};
  auto file = medium.read_journal();
  if (!file.ok() && file.status().error_number() == ENOENT) return lengths;
  if (!file.ok()) return file.status();
  auto reader = journal::Reader::open(*file.value());
  if (!reader.ok()) return reader.status();
  for (;;) {
    auto record = reader.value().next();
    if (!record.ok()) return record.status();
    if (!record.value().has_value()) return lengths;
    lengths.recovered_bytes = record.value()->header.file_size;
    // Nothing of a heap that was cut is looked at behind the cut, but for zeros.
    lengths.base_bytes =
        std::min({lengths.base_bytes, lengths.recovered_bytes, record.value()->header.truncate_to});
    PAWL_TRY(reader.value().visit(*record.value(), visit));
  }
}

}  // namespace

ClosedHeap::ClosedHeap(std::string path, char* base, std::uint64_t size_bytes,
                       std::uint64_t size_bytes_max)
    : path_(std::move(path)), arena_(base, size_bytes, size_bytes_max, [](std::uint64_t) {
        return Status::failure(EROFS, "a heap that is only looked at does not grow");
      }) {}

ClosedHeap::~ClosedHeap() { ::munmap(arena_.base(), arena_.size_bytes()); }

Result<std::unique_ptr<ClosedHeap>> ClosedHeap::look_at(Medium& medium) {
  // Its address first, which a young heap may have in its journal only.
  Identity identity{};
  const auto identity_bytes = std::as_writable_bytes(std::span(&identity, 1));
  PAWL_TRY(medium.base().read(0, identity_bytes));
  auto lengths = replay_into(medium, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
    if (offset < sizeof identity)
      std::memcpy(identity_bytes.data() + offset, bytes.data(),
                  std::min(bytes.size(), sizeof identity - offset));
    return Status{};
  });
  if (!lengths.ok()) return lengths.status();
  PAWL_TRY(check_identity(identity, {}, medium.path()));
  const std::uint64_t size_bytes = lengths.value().recovered_bytes;
  PAWL_TRY(check_size(identity, size_bytes, medium.path()));
  void* const wanted = memory_at(identity.address);
  void* const at = ::mmap(wanted, size_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (at != wanted) {
    if (at != MAP_FAILED) ::munmap(at, size_bytes);
    return address_taken(medium.path(), {identity.address, identity.address + size_bytes});
  }
  std::unique_ptr<ClosedHeap> heap(
      new ClosedHeap(medium.path(), static_cast<char*>(at), size_bytes, identity.size_bytes_max));
  const std::uint64_t base_bytes = round_down(lengths.value().base_bytes, kPageBytes);
  if (base_bytes > 0) {
    auto base =
        medium.map_private(at, base_bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_NORESERVE, 0);
    if (!base.ok()) return base.status();
  }
  auto replayed = replay_into(medium, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
    if (offset > size_bytes || bytes.size() > size_bytes - offset)
      return heap_damaged("the journal leads past the end of " + medium.path());
    std::memcpy(static_cast<char*>(at) + offset, bytes.data(), bytes.size());
    return Status{};
  });
  if (!replayed.ok()) return replayed.status();
  return heap;
}

}  // namespace pawl
