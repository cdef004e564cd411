#include "heap/identity.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <random>
#include <utility>

#include "heap/sealed.h"

namespace pawl {
namespace {

using heap_format::Identity;
using heap_format::kTextBytes;

// What decides how plain C data lies in memory.
constexpr const char* kMachine =
#if defined(__x86_64__)
    "x86-64, "
#elif defined(__aarch64__)
    "AArch64, "
#elif defined(__riscv)
    "RISC-V, "
#else
    "another processor, "
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    "64-bit, little-endian";
#else
    "64-bit, big-endian";
#endif
static_assert(sizeof(void*) == 8);

void set_text(std::array<char, kTextBytes>& text, const std::string& to) {
  PAWL_ASSERT(to.size() < kTextBytes);
  text.fill('\0');
  std::copy(to.begin(), to.end(), text.begin());
}

Status not_supported(pawl_error code, std::string text) {
  return Status::failure(ENOTSUP, code, std::move(text));
}

}  // namespace

std::string text_of(const std::array<char, kTextBytes>& text) {
  return {text.data(), ::strnlen(text.data(), text.size())};
}

void set_layout(Identity& identity, const std::string& layout) {
  set_text(identity.layout, layout);
}

Identity make_identity(std::uint64_t address, std::uint64_t size_bytes_max,
                       const std::string& layout) {
  Identity identity{};
  identity.magic = heap_format::kMagic;
  identity.version = heap_format::kVersion;
  identity.address = address;
  identity.size_bytes_max = size_bytes_max;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  identity.creation_time_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
                              static_cast<std::uint64_t>(now.tv_nsec);
  std::random_device random;
  std::generate(identity.id.begin(), identity.id.end(),
                [&] { return static_cast<std::byte>(random()); });
  set_text(identity.machine, kMachine);
  set_layout(identity, layout);
  seal(identity);
  return identity;
}

// In this order: what a newer version means by the other fields, only that version knows.
Status check_identity(const Identity& identity, const std::string& layout,
                      const std::string& path) {
  if (identity.magic != heap_format::kMagic)
    return Status::failure(EINVAL, PAWL_ERROR_WRONG_KIND_OF_FILE,
                           path + " is no heap: it does not begin as one");
  if (identity.version > heap_format::kVersion)
    return not_supported(PAWL_ERROR_UNSUPPORTED_VERSION,
                         path + " is a heap of version " + std::to_string(identity.version) +
                             "; this Pawl reads versions up to " +
                             std::to_string(heap_format::kVersion) + ". Open it with a newer one");
  if (identity.version != heap_format::kVersion || !is_sealed(identity))
    return heap_damaged("the header of " + path +
                        " does not match its checksum; restore it from a copy");
  if (const std::string machine = text_of(identity.machine); machine != kMachine)
    return not_supported(PAWL_ERROR_OTHER_LAYOUT,
                         path + " was written on a machine of another kind (" + machine +
                             ") than this one (" + kMachine + ")");
  const std::string recorded = text_of(identity.layout);
  if (!recorded.empty() && !layout.empty() && recorded != layout)
    return not_supported(PAWL_ERROR_OTHER_LAYOUT, path + " holds data laid out by \"" + recorded +
                                                      "\", and this program lays it out by \"" +
                                                      layout +
                                                      "\"; build the program as the first was");
  // Whoever wrote the file does not choose a place beside this process's code, stack or libraries.
  if (identity.address % heap_format::kSegmentBytes != 0 ||
      identity.size_bytes_max % heap_format::kSegmentBytes != 0 ||
      identity.size_bytes_max < PAWL_HEAP_SIZE_MIN ||
      identity.size_bytes_max > PAWL_HEAP_SIZE_MAX || identity.address < heap_format::kAddressMin ||
      identity.address > heap_format::kAddressMax - identity.size_bytes_max)
    return heap_damaged("the header of " + path + " names an address or a size that cannot be");
  return {};
}

Status check_size(const Identity& identity, std::uint64_t size_bytes, const std::string& path) {
  if (size_bytes % heap_format::kSegmentBytes == 0 && size_bytes >= PAWL_HEAP_SIZE_MIN &&
      size_bytes <= identity.size_bytes_max)
    return {};
  return heap_damaged(path + " has a size that no heap has: " + std::to_string(size_bytes) +
                      " bytes. Was it cut?");
}

}  // namespace pawl
