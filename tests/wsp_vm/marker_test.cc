// The marker's two slots: what a torn write or damage leaves, and what can never come back.
#include "wsp/vm/marker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "support/temporary_directory.h"
#include "wsp/vm/description.h"
#include "wsp/vm/options.h"

namespace pawl::wsp::vm {

namespace {

Marker some_save(std::uint64_t generation) {
  Marker marker;
  marker.state = MarkerState::kSaved;
  marker.generation = generation;
  marker.save_id = 77;
  marker.saved_at_ns = 1;
  marker.device_state_bytes = 300'000;
  marker.device_state_checksum = 5;
  marker.memory_sample_checksum = 6;
  marker.description_checksum = 7;
  marker.qemu_version = "7.2.22 Debian";
  marker.memory = {1, 2, 3, 4, 5, 6, 7, 0};
  marker.disks = {{8, 9, 10, 11, 12, 13, 14, 0}, {15, 16, 17, 18, 19, 20, 21, 1}};
  return marker;
}

class MarkerTest : public ::testing::Test {
 protected:
  MarkerTest() : path_(directory_ / "marker") {}

  MarkerFile open() {
    Result<MachineDirectory> own = MachineDirectory::open(directory_.path(), false);
    EXPECT_TRUE(own.ok()) << own.status().text();
    Result<MarkerFile> opened = MarkerFile::open(own.value());
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    return std::move(opened.value());
  }
  void damage(std::size_t slot) {
    const Descriptor file(::open(path_.c_str(), O_RDWR));
    const char byte = '?';
    ASSERT_EQ(::pwrite(file.get(), &byte, 1, static_cast<off_t>(slot * kMarkerSlotBytes + 200)), 1);
  }

  test::TemporaryDirectory directory_;
  std::string path_;
};

TEST(MarkerSlotTest, HoldsAllThatWasPutIn) {
  const Marker put = some_save(3);
  const Result<NumberedMarker> got = decode(encode(put, 9));
  ASSERT_TRUE(got.ok()) << got.status().text();
  EXPECT_EQ(got.value().sequence, 9U);
  const Marker& found = got.value().marker;
  EXPECT_EQ(found.state, put.state);
  EXPECT_EQ(found.generation, put.generation);
  EXPECT_EQ(found.save_id, put.save_id);
  EXPECT_EQ(found.saved_at_ns, put.saved_at_ns);
  EXPECT_EQ(found.device_state_bytes, put.device_state_bytes);
  EXPECT_EQ(found.device_state_checksum, put.device_state_checksum);
  EXPECT_EQ(found.memory_sample_checksum, put.memory_sample_checksum);
  EXPECT_EQ(found.description_checksum, put.description_checksum);
  EXPECT_EQ(found.qemu_version, put.qemu_version);
  EXPECT_TRUE(found.memory.is_same_file(put.memory) && found.memory.is_unchanged(put.memory));
  EXPECT_EQ(found.memory.accessed_ns, put.memory.accessed_ns);
  ASSERT_EQ(found.disks.size(), 2U);
  EXPECT_TRUE(found.disks[1].is_same_file(put.disks[1]));
  EXPECT_EQ(found.disks[1].is_device, 1U);
}

TEST(MarkerSlotTest, NoByteCanBeAnother) {
  const MarkerSlot whole = encode(some_save(3), 9);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    MarkerSlot damaged = whole;
    damaged[at] ^= std::byte{1};
    EXPECT_EQ(decode(damaged).status().error_number(), EBADMSG) << at;
  }
}

TEST_F(MarkerTest, SaysThatNothingWasEverWritten) {
  EXPECT_EQ(open().read().status().error_number(), ENODATA);
}

TEST_F(MarkerTest, ATornWriteLeavesWhatWasThere) {
  MarkerFile file = open();
  ASSERT_TRUE(file.clear(1).ok());
  ASSERT_TRUE(file.write(some_save(1), true).ok());
  MarkerFile again = open();
  const Result<Marker> found = again.read();
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found.value().is_save());
  // And the next write goes where the torn one went.
  ASSERT_TRUE(again.write(some_save(1)).ok());
  EXPECT_TRUE(open().read().value().is_save());
}

TEST_F(MarkerTest, TheNewestCounts) {
  ASSERT_TRUE(open().clear(4).ok());
  ASSERT_TRUE(open().write(some_save(4)).ok());
  EXPECT_TRUE(open().read().value().is_save());
  ASSERT_TRUE(open().clear(5).ok());
  const Result<Marker> found = open().read();
  EXPECT_FALSE(found.value().is_save());
  EXPECT_EQ(found.value().generation, 5U);
}

TEST_F(MarkerTest, NoDamageToOneSlotBringsBackASaveThatTheGuestHasOutlived) {
  for (const std::size_t slot : {0U, 1U}) {
    ASSERT_TRUE(open().clear(4).ok());
    ASSERT_TRUE(open().write(some_save(4)).ok());
    ASSERT_TRUE(open().clear(5).ok());
    damage(slot);
    const Result<Marker> found = open().read();
    ASSERT_TRUE(found.ok()) << slot;
    EXPECT_FALSE(found.value().is_save()) << slot;
  }
}

TEST_F(MarkerTest, BothSlotsDamagedIsToldApartFromNone) {
  ASSERT_TRUE(open().clear(4).ok());
  damage(0);
  damage(1);
  EXPECT_EQ(open().read().status().error_number(), EBADMSG);
}

TEST(DescriptionTest, IsReadAsItWasWritten) {
  test::TemporaryDirectory directory;
  const Result<MachineDirectory> own = MachineDirectory::open(directory.path(), false);
  ASSERT_TRUE(own.ok()) << own.status().text();
  MachineDescription put;
  put.memory_bytes = std::uint64_t{64} << 20;
  put.added_disks = {{"/a, b", 8}};
  put.options = {"-name", "a \"b\" c"};
  put.disk_files = {"/a, b"};
  put.window_ms = 12.5;
  put.serial_line = "/dev/ttyS0";
  ASSERT_TRUE(write_description(put, own.value()).ok());
  const Result<StoredDescription> got = read_description(own.value());
  ASSERT_TRUE(got.ok()) << got.status().text();
  EXPECT_EQ(text_of(got.value().description), text_of(put));
  EXPECT_TRUE(got.value().description.is_same_machine(put));
  put.window_ms = 1;  // who watches is no part of the machine
  EXPECT_TRUE(got.value().description.is_same_machine(put));
  put.options.emplace_back("-no-acpi");
  EXPECT_FALSE(got.value().description.is_same_machine(put));
}

TEST(DescriptionTest, AWindowBoundsTheRequestsUnderWay) {
  EXPECT_EQ(disk_requests_max(1), 4U);
  EXPECT_EQ(disk_requests_max(400), 16U);
  EXPECT_EQ(disk_requests_max(3'600'000), 128U);
}

TEST(CommandLineTest, CommasInNamesAreDoubled) {
  MachineDescription machine;
  machine.added_disks = {{"/a,b", 8}};
  bool found = false;
  for (const std::string& word : command_line(machine, "/m,n", 3, Start::kCold))
    found = found || word.find("mem-path=/m,,n") != std::string::npos;
  EXPECT_TRUE(found);
}

}  // namespace

}  // namespace pawl::wsp::vm
