#include "journal/format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace pawl::journal {
namespace {

TEST(Checksum, IsTheStandardCrc32c) {
  EXPECT_EQ(checksum("123456789", 9), 0xE3069283u);
  const std::vector<unsigned char> zeros(32, 0);  // RFC 3720, appendix B.4
  EXPECT_EQ(checksum(zeros.data(), zeros.size()), 0x8A9136AAu);
  const std::vector<unsigned char> ones(32, 0xFF);
  EXPECT_EQ(checksum(ones.data(), ones.size()), 0x62A8AB43u);
}

TEST(Checksum, OfNothingIsZero) {
  EXPECT_EQ(checksum(nullptr, 0), 0u);
  EXPECT_EQ(checksum(nullptr, 0, 0xE3069283u), 0xE3069283u);
}

TEST(Checksum, ContinuesOverAnySplit) {
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<char>(i * 7));
  const std::uint32_t whole = checksum(text.data(), text.size());
  for (std::size_t split = 0; split <= text.size(); ++split) {
    const std::uint32_t first = checksum(text.data(), split);
    EXPECT_EQ(checksum(text.data() + split, text.size() - split, first), whole) << split;
  }
}

TEST(Checksum, IgnoresItsOwnFieldAndNoOther) {
  Header header;
  const std::uint32_t sum = header_checksum(header);
  header.crc32c = 0x12345678;
  EXPECT_EQ(header_checksum(header), sum);
  for (std::size_t byte = 0; byte < sizeof(header); ++byte) {
    Header flipped = header;
    reinterpret_cast<unsigned char*>(&flipped)[byte] ^= 1;
    const bool in_checksum =
        byte >= offsetof(Header, crc32c) && byte < offsetof(Header, crc32c) + sizeof(header.crc32c);
    EXPECT_EQ(header_checksum(flipped) == sum, in_checksum) << byte;
  }

  RecordHeader record;
  const std::uint32_t record_sum = record_header_checksum(record);
  for (std::size_t byte = 0; byte < sizeof(record); ++byte) {
    RecordHeader flipped = record;
    reinterpret_cast<unsigned char*>(&flipped)[byte] ^= 1;
    const std::size_t first = offsetof(RecordHeader, header_crc32c);
    const bool in_checksum = byte >= first && byte < first + sizeof(record.header_crc32c);
    EXPECT_EQ(record_header_checksum(flipped) == record_sum, in_checksum) << byte;
  }
}

TEST(Format, FieldsStandWhereTheSpecificationDrawsThem) {
  EXPECT_EQ(offsetof(Header, version), 8u);
  EXPECT_EQ(offsetof(Header, crc32c), 12u);
  EXPECT_EQ(offsetof(Header, generation), 16u);
  EXPECT_EQ(offsetof(Header, journal_id), 24u);
  EXPECT_EQ(offsetof(Header, epoch), 40u);
  EXPECT_EQ(offsetof(Header, file_inode), 48u);
  EXPECT_EQ(offsetof(Header, file_birth_time_ns), 56u);
  EXPECT_EQ(offsetof(Header, tail_offset), 64u);
  EXPECT_EQ(offsetof(Header, tail_sequence), 72u);
  EXPECT_EQ(offsetof(Header, writer_process), 80u);
  EXPECT_EQ(offsetof(Header, journal_bytes), 88u);
  EXPECT_EQ(offsetof(Header, block_bytes), 96u);

  EXPECT_EQ(offsetof(RecordHeader, header_crc32c), 4u);
  EXPECT_EQ(offsetof(RecordHeader, epoch), 8u);
  EXPECT_EQ(offsetof(RecordHeader, sequence), 16u);
  EXPECT_EQ(offsetof(RecordHeader, payload_bytes), 24u);
  EXPECT_EQ(offsetof(RecordHeader, file_size), 32u);
  EXPECT_EQ(offsetof(RecordHeader, truncate_to), 40u);
  EXPECT_EQ(offsetof(RecordHeader, time_ns), 48u);
  EXPECT_EQ(offsetof(RecordHeader, payload_crc32c), 56u);
  EXPECT_EQ(offsetof(RecordHeader, header_generation), 60u);
  EXPECT_EQ(offsetof(RecordHeader, durable_sequence), 64u);
}

TEST(Format, RecordsFillWholeBlocks) {
  EXPECT_EQ(record_bytes(0, kBlockBytes), 4096u);
  EXPECT_EQ(record_bytes(4096 - 72, kBlockBytes), 4096u);
  EXPECT_EQ(record_bytes(4096 - 71, kBlockBytes), 8192u);
  EXPECT_EQ(record_bytes(0, kLineBytes), 128u);
  EXPECT_EQ(record_bytes(range_bytes(64), kLineBytes), 192u);
  EXPECT_EQ(record_bytes(192 - 71, kLineBytes), 256u);
  EXPECT_EQ(range_bytes(1), 24u);
  EXPECT_EQ(range_bytes(8), 24u);
  EXPECT_EQ(range_bytes(9), 32u);
}

}  // namespace
}  // namespace pawl::journal
