#include "medium/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace pawl {

namespace {
// ISA-L counts bytes in an int.
constexpr std::size_t kChecksumPieceBytes = std::size_t{1} << 30;
}  // namespace

std::uint32_t checksum(const void* bytes, std::size_t count, std::uint32_t previous) {
  // ISA-L's function is the bare register: CRC32C inverts it before the first byte and after the
  // last.  Inverting around each piece lets a finished value be continued.
  std::uint32_t crc_register = ~previous;
  // ISA-L reads only, though its parameter is not const.
  auto* at = const_cast<unsigned char*>(static_cast<const unsigned char*>(bytes));
  while (count > 0) {
    const std::size_t piece = std::min(count, kChecksumPieceBytes);
    crc_register = crc32_iscsi(at, static_cast<int>(piece), crc_register);
    at += piece;
    count -= piece;
  }
  return ~crc_register;
}

}  // namespace pawl
