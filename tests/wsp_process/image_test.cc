#include "wsp/process/image.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "wsp/process/records.h"

namespace pawl::wsp {
namespace {

constexpr std::uint64_t kGeneration = 77;
constexpr std::uint64_t kInode = 5;
constexpr std::size_t kBytes = 16384;

std::vector<std::byte> image_with_records() {
  std::vector<std::byte> image(kBytes);
  ImageWriter writer(image, kGeneration, kInode);
  writer.begin(RecordKind::mapping);
  writer.add_object(std::uint64_t{42});
  writer.add_text("a file");
  writer.end();
  writer.begin(RecordKind::system);
  writer.add_object('x');
  writer.end();
  EXPECT_TRUE(writer.finish().ok());
  writer.mark();
  return image;
}

TEST(Image, GivesBackWhatWasWritten) {
  const std::vector<std::byte> image = image_with_records();
  Result<std::vector<RecordReader>> records = read_image(image, kGeneration, kInode);
  ASSERT_TRUE(records.ok()) << records.status().text();
  ASSERT_EQ(records.value().size(), 2U);
  RecordReader& first = records.value()[0];
  std::uint64_t number = 0;
  std::string text;
  EXPECT_EQ(first.kind(), RecordKind::mapping);
  EXPECT_TRUE(first.take_object(number) && first.take_text(text));
  EXPECT_EQ(number, 42U);
  EXPECT_EQ(text, "a file");
  EXPECT_FALSE(first.take_object(number));
}

// Each byte that is read, changed in one bit: nothing of it is ever believed.
TEST(Image, BelievesNothingThatWasChanged) {
  std::vector<std::byte> image = image_with_records();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < image.size(); ++at) {
    if (image[at] == std::byte{0}) continue;
    image[at] ^= std::byte{0x10};
    if (!read_image(image, kGeneration, kInode).ok()) ++refused;
    image[at] ^= std::byte{0x10};
  }
  std::size_t written = 0;
  for (const std::byte byte : image) written += byte != std::byte{0} ? 1 : 0;
  EXPECT_EQ(refused, written);
}

TEST(Image, IsOfOneGenerationAndOneMemory) {
  const std::vector<std::byte> image = image_with_records();
  EXPECT_EQ(read_image(image, kGeneration + 1, kInode).status().error_number(), EALREADY);
  EXPECT_EQ(read_image(image, kGeneration + 2, kInode).status().error_number(), ESTALE);
  EXPECT_EQ(read_image(image, kGeneration, kInode + 1).status().error_number(), ESTALE);
}

TEST(Image, IsNothingWithoutItsMarker) {
  std::vector<std::byte> image = image_with_records();
  remove_marker(image);
  EXPECT_EQ(read_image(image, kGeneration, kInode).status().error_number(), ENODATA);
  write_refusal(image, "for a reason");
  const Status refused = read_image(image, kGeneration, kInode).status();
  EXPECT_EQ(refused.error_number(), ENODATA);
  EXPECT_NE(refused.text().find("for a reason"), std::string::npos);
}

TEST(Image, SaysWhenItIsFull) {
  std::vector<std::byte> image(kBytes);
  ImageWriter writer(image, kGeneration, kInode);
  writer.begin(RecordKind::system);
  writer.add(std::vector<std::byte>(kBytes).data(), kBytes);
  writer.end();
  EXPECT_EQ(writer.finish().error_number(), ENOSPC);
}

// What a length of its own goes with is handed to the kernel so long.
TEST(Records, AreRefusedWhereALengthIsMoreThanTheRoom) {
  SavedProcess process;
  process.threads.resize(1);
  process.descriptors.resize(1);
  process.descriptors[0].options.resize(1);
  DescriptorFacts& facts = process.descriptors[0].facts;
  const auto read = [&process] {
    std::vector<std::byte> image(kBytes);
    ImageWriter writer(image, kGeneration, kInode);
    write_records(writer, process);
    EXPECT_TRUE(writer.finish().ok());
    writer.mark();
    return read_saved(image, kGeneration, kInode).status();
  };
  facts.address_bytes = sizeof(facts.address);
  EXPECT_TRUE(read().ok()) << read().text();
  facts.address_bytes = sizeof(facts.address) + 1;
  EXPECT_EQ(read().error_number(), EBADMSG);
  facts.address_bytes = 0;
  facts.peer_bytes = sizeof(facts.peer) + 1;
  EXPECT_EQ(read().error_number(), EBADMSG);
  facts.peer_bytes = 0;
  process.descriptors[0].options[0].bytes = sizeof(SocketOption::value) + 1;
  EXPECT_EQ(read().error_number(), EBADMSG);
  process.descriptors[0].options[0].bytes = 0;
  std::memset(process.threads[0].facts.name, 'x', kThreadNameBytes);
  EXPECT_EQ(read().error_number(), EBADMSG);
}

}  // namespace
}  // namespace pawl::wsp
