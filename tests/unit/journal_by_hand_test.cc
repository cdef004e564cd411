// Reads the journal that docs/journal-format.md writes out by hand, out of that page itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "journal/reader.h"

namespace pawl::journal {
namespace {

std::string page() {
  const auto path =
      std::filesystem::path(__FILE__).parent_path() / ".." / ".." / "docs" / "journal-format.md";
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The lines between ```name and ```.
std::string fenced(const std::string& text, const std::string& name) {
  const std::string opening = "```" + name + "\n";
  const std::size_t begin = text.find(opening);
  if (begin == std::string::npos) return "";
  const std::size_t first = begin + opening.size();
  return text.substr(first, text.find("```", first) - first);
}

std::vector<std::byte> parse_hex_dump(const std::string& dump) {
  std::vector<std::byte> bytes;
  std::istringstream lines(dump);
  for (std::string line; std::getline(lines, line);) {
    if (line == "*") continue;
    std::istringstream fields(line.substr(0, line.find('|')));
    std::size_t offset = 0;
    fields >> std::hex >> offset;
    EXPECT_FALSE(fields.fail()) << line;
    EXPECT_GE(offset, bytes.size()) << line;
    bytes.resize(offset);  // what was left out is zeros
    for (unsigned value = 0; fields >> std::hex >> value;) {
      EXPECT_LT(value, 256u);
      bytes.push_back(static_cast<std::byte>(value));
    }
  }
  return bytes;
}

class PageFile : public MediumFile {
 public:
  explicit PageFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    std::fill(into.begin(), into.end(), std::byte{0});
    if (offset >= bytes_.size()) return {};
    std::memcpy(into.data(), bytes_.data() + offset,
                std::min<std::size_t>(into.size(), bytes_.size() - offset));
    return {};
  }
  Status write(std::uint64_t, std::span<const std::byte>) override { return refuse(); }
  Status flush() override { return refuse(); }
  Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }
  Status resize(std::uint64_t) override { return refuse(); }
  Status reserve(std::uint64_t, std::uint64_t) override { return refuse(); }
  Status punch(std::uint64_t, std::uint64_t) override { return refuse(); }
  Status zero(std::uint64_t, std::uint64_t) override { return refuse(); }
  Result<std::uint64_t> allocated_prefix_bytes() override { return std::uint64_t{bytes_.size()}; }

 private:
  static Status refuse() { return Status::failure(EROFS, "the page is not written to"); }
  std::vector<std::byte> bytes_;
};

std::string line_of(std::string text) {
  text.resize(64, '.');
  return text;
}

TEST(JournalByHand, IsReadAsThePageSays) {
  PageFile file(parse_hex_dump(fenced(page(), "journal")));
  ASSERT_EQ(file.size().value(), 20480u);
  Result<Reader> opened = Reader::open(file);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Reader& reader = opened.value();

  const Header& header = reader.header();
  EXPECT_EQ(header.generation, 4u);
  EXPECT_EQ(header.epoch, 0x0807060504030201u);
  EXPECT_EQ(header.file_inode, 1234u);
  EXPECT_EQ(header.file_birth_time_ns, 1700000000000000000u);
  EXPECT_EQ(header.tail_offset, 0x3000u);
  EXPECT_EQ(header.tail_sequence, 2u);
  EXPECT_EQ(header.writer_process, 4711u);
  EXPECT_EQ(header.journal_bytes, 20480u);
  EXPECT_FALSE(reader.other_slot_damaged());

  struct Expected {
    std::uint64_t position, sequence, payload_bytes, file_size, truncate_to, time_ns;
    std::vector<std::pair<std::uint64_t, std::string>> ranges;
  };
  const std::uint64_t time_ns = 1700000001000000000;
  const std::vector<Expected> records = {
      {0x3000,
       2,
       144,
       4096,
       kNoTruncation,
       time_ns,
       {{64, line_of("alice has 70") + line_of("bob has 130")}}},
      {0x4000,
       3,
       112,
       5003,
       kNoTruncation,
       time_ns + 1000000,
       {{0, line_of("last transfer: 30 to bob")}, {4992, "hello pawl\n"}}},
      {0x2000, 4, 0, 4096, 4096, time_ns + 2000000, {}},
  };
  std::string content(4096, '\0');  // the file, as recovery makes it
  for (const Expected& expected : records) {
    Result<std::optional<RecordSummary>> record = reader.next();
    ASSERT_TRUE(record.ok() && record.value().has_value()) << reader.end_reason();
    EXPECT_EQ(record.value()->position, expected.position);
    EXPECT_EQ(record.value()->header.sequence, expected.sequence);
    EXPECT_EQ(record.value()->header.payload_bytes, expected.payload_bytes);
    EXPECT_EQ(record.value()->header.file_size, expected.file_size);
    EXPECT_EQ(record.value()->header.truncate_to, expected.truncate_to);
    EXPECT_EQ(record.value()->header.time_ns, expected.time_ns);
    EXPECT_EQ(record.value()->header.durable_sequence, expected.sequence - 1);
    EXPECT_EQ(record.value()->header.header_generation, expected.sequence == 4 ? 4u : 3u);
    if (expected.truncate_to != kNoTruncation) content.resize(expected.truncate_to);
    content.resize(expected.file_size);
    std::vector<std::pair<std::uint64_t, std::string>> ranges;
    const Status status = reader.visit(*record.value(), [&](std::uint64_t offset, auto bytes) {
      ranges.emplace_back(offset,
                          std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      content.replace(offset, bytes.size(), ranges.back().second);
      return Status{};
    });
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(ranges, expected.ranges);
    EXPECT_EQ(record.value()->range_count, expected.ranges.size());
  }
  Result<std::optional<RecordSummary>> end = reader.next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end.value().has_value());
  EXPECT_EQ(reader.end_reason(), "");
  EXPECT_EQ(content, line_of("last transfer: 30 to bob") + line_of("alice has 70") +
                         line_of("bob has 130") + std::string(4096 - 192, '\0'));
}

struct OfLines {
  std::uint64_t position, sequence, bytes, file_size, offset;
  std::string content;
};

TEST(JournalByHand, IsReadInLinesAsThePageSays) {
  PageFile file(parse_hex_dump(fenced(page(), "journal-of-lines")));
  ASSERT_EQ(file.size().value(), 12288u);
  Result<Reader> opened = Reader::open(file);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Reader& reader = opened.value();
  EXPECT_EQ(reader.header().block_bytes, 64u);
  EXPECT_EQ(reader.header().generation, 2u);
  EXPECT_EQ(reader.header().tail_offset, 0x20c0u);
  EXPECT_FALSE(reader.other_slot_damaged());
  const std::vector<OfLines> records = {{0x20c0, 2, 192, 4096, 64, line_of("alice has 70")},
                                        {0x2180, 3, 128, 4107, 4096, "hello pawl\n"}};
  for (const OfLines& expected : records) {
    Result<std::optional<RecordSummary>> record = reader.next();
    ASSERT_TRUE(record.ok() && record.value().has_value()) << reader.end_reason();
    EXPECT_EQ(record.value()->position, expected.position);
    EXPECT_EQ(record.value()->bytes, expected.bytes);
    EXPECT_EQ(record.value()->header.sequence, expected.sequence);
    EXPECT_EQ(record.value()->header.durable_sequence, expected.sequence - 1);
    EXPECT_EQ(record.value()->header.header_generation, expected.sequence - 1);
    EXPECT_EQ(record.value()->header.file_size, expected.file_size);
    EXPECT_EQ(record.value()->range_count, 1u);
    const Status status = reader.visit(*record.value(), [&](std::uint64_t offset, auto bytes) {
      EXPECT_EQ(offset, expected.offset);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                expected.content);
      return Status{};
    });
    EXPECT_TRUE(status.ok()) << status.text();
  }
  EXPECT_FALSE(reader.next().value().has_value());
  EXPECT_EQ(reader.end_reason(), "");
  EXPECT_EQ(reader.evidence_of_loss().value().text, "");
}

// What the page says of the line at 2100.
TEST(JournalByHand, LosesARecordWithAnyOfItsLines) {
  const std::vector<std::byte> whole = parse_hex_dump(fenced(page(), "journal-of-lines"));
  for (std::size_t line = 0x20c0; line < 0x2180; line += 64) {
    std::vector<std::byte> bytes = whole;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(line), 64, std::byte{0});
    for (std::size_t at = 0x2180; at < bytes.size(); ++at) bytes[at] = std::byte{0};
    PageFile file(bytes);
    Result<Reader> reader = Reader::open(file);
    ASSERT_TRUE(reader.ok());
    EXPECT_FALSE(reader.value().next().value().has_value()) << line;
    EXPECT_EQ(reader.value().evidence_of_loss().value().text, "") << line;
  }
}

// The other slot is not decoration: with slot A gone, slot B leads to record 1, whose place was
// taken, and nothing is believed.
TEST(JournalByHand, DependsOnItsHeaderSlot) {
  std::vector<std::byte> bytes = parse_hex_dump(fenced(page(), "journal"));
  ASSERT_EQ(bytes.size(), 20480u);
  bytes[16] ^= std::byte{1};
  PageFile file(bytes);
  Result<Reader> reader = Reader::open(file);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader.value().other_slot_damaged());
  EXPECT_EQ(reader.value().header().generation, 3u);
  EXPECT_FALSE(reader.value().next().value().has_value());
  EXPECT_NE(reader.value().evidence_of_loss().value().text, "");
}

TEST(JournalByHand, HasTheMarkThatThePageShows) {
  PageFile file(parse_hex_dump(fenced(page(), "journal")));
  Result<Reader> reader = Reader::open(file);
  ASSERT_TRUE(reader.ok());
  std::string digits;
  for (const std::byte byte : reader.value().header().journal_id) {
    constexpr char kDigits[] = "0123456789abcdef";
    digits.push_back(kDigits[std::to_integer<unsigned>(byte) >> 4]);
    digits.push_back(kDigits[std::to_integer<unsigned>(byte) & 15]);
  }
  EXPECT_EQ(fenced(page(), "mark"),
            "2 " + digits +
                " open 131077:1700000000000000000 131078:1700000000000000000 "
                "/srv/bank/accounts.pawl\n");
}

}  // namespace
}  // namespace pawl::journal
