#include "journal/format.h"

namespace pawl::journal {

std::uint32_t header_checksum(Header header, std::span<const std::byte> list) {
  header.crc32c = 0;
  return checksum(list.data(), list.size(), checksum(&header, sizeof(header)));
}

std::uint32_t record_header_checksum(RecordHeader header) {
  header.header_crc32c = 0;
  return checksum(&header, sizeof(header));
}

}  // namespace pawl::journal
