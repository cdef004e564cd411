// The operations on persistent memory: the bytes, and what of them a fence makes durable.
#include "medium/persistent_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "medium/persistent_copy.h"
#include "support/observed_memory.h"

namespace pawl {
namespace {

constexpr std::size_t kAreaBytes = 1024;
constexpr std::size_t kCountMax = 300;

struct alignas(kMemoryLineBytes) Area {
  std::array<std::byte, kAreaBytes> bytes{};
};

std::vector<std::byte> some_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// What of an area is durable, and what would be behind a fence.
class Shadow final : public test::MemoryObserver {
 public:
  explicit Shadow(Area& area) : area_(area), durable_(area) {}

  bool stores(const std::byte* at, std::span<const std::byte> bytes) override {
    EXPECT_LT(bytes.size(), kMemoryWordBytes);
    EXPECT_EQ(place(at) / kMemoryWordBytes, (place(at) + bytes.size() - 1) / kMemoryWordBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) cached_[place(at) + i] = bytes[i];
    return true;
  }
  bool streams(const std::byte* at, std::span<const std::byte> bytes) override {
    EXPECT_EQ(place(at) % kMemoryWordBytes, 0u);
    EXPECT_EQ(bytes.size() % kMemoryWordBytes, 0u);
    EXPECT_LE(place(at) + bytes.size(), kAreaBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) arriving_[place(at) + i] = bytes[i];
    return true;
  }
  void writes_back(const std::byte* line) override {
    EXPECT_EQ(place(line) % kMemoryLineBytes, 0u);
    flushes_ += 1;
    for (auto byte = cached_.begin(); byte != cached_.end();) {
      if (byte->first / kMemoryLineBytes != place(line) / kMemoryLineBytes) {
        ++byte;
        continue;
      }
      arriving_[byte->first] = byte->second;
      byte = cached_.erase(byte);
    }
  }
  void fences() override {
    for (const auto& [at, byte] : arriving_) durable_.bytes[at] = byte;
    arriving_.clear();
  }

  const Area& durable() const { return durable_; }
  std::size_t take_flushes() { return std::exchange(flushes_, 0); }

 private:
  std::size_t place(const std::byte* at) const {
    EXPECT_GE(at, area_.bytes.data());
    EXPECT_LE(at, area_.bytes.data() + kAreaBytes);
    return static_cast<std::size_t>(at - area_.bytes.data());
  }

  Area& area_;
  Area durable_;
  std::map<std::size_t, std::byte> cached_;
  std::map<std::size_t, std::byte> arriving_;
  std::size_t flushes_ = 0;
};

// Calls try_copy(into, from) for all sizes from 0 on, at all places in a line.
template <class TryCopy>
void for_all_copies(TryCopy try_copy) {
  const std::vector<std::byte> from = some_bytes(kCountMax + 16, 1);
  for (std::size_t into_line = 0; into_line < kMemoryLineBytes; ++into_line) {
    for (std::size_t count = 0; count <= kCountMax; ++count) {
      const std::size_t misaligned = (into_line + count) % 9;
      try_copy(kMemoryLineBytes + into_line, std::span(from).subspan(misaligned, count));
      if (testing::Test::HasFailure()) return;
    }
  }
}

class Flushes : public testing::TestWithParam<LineFlush> {};

TEST_P(Flushes, CopiesLikeMemcpy) {
  auto made = make_persistent_memory({.flush = GetParam()});
  if (made.status().error_number() == ENOTSUP) GTEST_SKIP() << made.status().text();
  PersistentMemory& memory = *made.value();
  Area area;
  Area wanted;
  for_all_copies([&](std::size_t into, std::span<const std::byte> from) {
    area.bytes.fill(std::byte{0x5A});
    wanted = area;
    if (!from.empty()) std::memcpy(wanted.bytes.data() + into, from.data(), from.size());
    memory.copy(area.bytes.data() + into, from);
    memory.fence();
    ASSERT_EQ(area.bytes, wanted.bytes) << from.size() << " bytes at " << into;
    memory.zero(area.bytes.data() + into, from.size());
    std::memset(wanted.bytes.data() + into, 0, from.size());
    memory.flush(area.bytes.data() + into, from.size());
    memory.fence();
    ASSERT_EQ(area.bytes, wanted.bytes) << from.size() << " zeros at " << into;
  });
}

INSTANTIATE_TEST_SUITE_P(All, Flushes,
                         testing::Values(LineFlush::automatic, LineFlush::clwb,
                                         LineFlush::clflushopt, LineFlush::clflush,
                                         LineFlush::none));

TEST(PersistentCopy, IsDurableBehindOneFence) {
  Area area;
  area.bytes.fill(std::byte{0x5A});
  Shadow shadow(area);
  test::ObservedMemory memory(shadow);
  for_all_copies([&](std::size_t into, std::span<const std::byte> from) {
    memory.copy(area.bytes.data() + into, from);
    // At most the first and the last line hold bytes that fill no word.
    ASSERT_LE(shadow.take_flushes(), 2u);
    memory.fence();
    ASSERT_EQ(area.bytes, shadow.durable().bytes) << from.size() << " bytes at " << into;
    ASSERT_TRUE(std::equal(from.begin(), from.end(), area.bytes.begin() + into));
  });
}

TEST(PersistentCopy, FlushesNothingOfWholeWords) {
  Area area;
  Shadow shadow(area);
  test::ObservedMemory memory(shadow);
  const std::vector<std::byte> from = some_bytes(kCountMax, 2);
  for (std::size_t into = 0; into < 2 * kMemoryLineBytes; into += kMemoryWordBytes) {
    for (std::size_t count = 0; count <= kCountMax; count += kMemoryWordBytes) {
      memory.copy(area.bytes.data() + into, std::span(from).first(count));
      EXPECT_EQ(shadow.take_flushes(), 0u);
    }
  }
}

TEST(PersistentMemory, FlushReachesEachLineOnce) {
  Area area;
  Shadow shadow(area);
  test::ObservedMemory memory(shadow);
  for (std::size_t at = 0; at < 130; ++at) {
    for (std::size_t count = 0; count < 200; ++count) {
      std::size_t lines = 0;
      for (std::size_t line = 0; line < kAreaBytes; line += kMemoryLineBytes)
        lines += count > 0 && line < at + count && at < line + kMemoryLineBytes ? 1 : 0;
      memory.flush(area.bytes.data() + at, count);
      EXPECT_EQ(shadow.take_flushes(), lines) << count << " bytes at " << at;
      EXPECT_EQ(lines_of(area.bytes.data() + at, count), lines);
    }
  }
}

TEST(PersistentMemory, ZerosMoreThanAPage) {
  auto memory = make_persistent_memory({});
  ASSERT_TRUE(memory.ok());
  std::vector<std::byte> bytes(20000, std::byte{1});
  std::vector<std::byte> wanted = bytes;
  memory.value()->zero(bytes.data() + 3, 19000);
  memory.value()->fence();
  std::fill_n(wanted.begin() + 3, 19000, std::byte{0});
  EXPECT_EQ(bytes, wanted);
}

// ------------------------------------------------------------------------------------ environment

class MemoryEnvironment : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* const name : kNames) ::unsetenv(name);
  }
  static void expect_refused(const char* name, const char* value, const char* told) {
    ::setenv(name, value, 1);
    const Status status = PersistentMemoryOptions::from_environment().status();
    EXPECT_EQ(status.error_number(), EINVAL) << name << "=" << value;
    for (const char* const part : {name, value, told})
      EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
    ::unsetenv(name);
  }
  static constexpr const char* kNames[] = {"PAWL_FLUSH", "PAWL_EMULATE_LINE_NS",
                                           "PAWL_EMULATE_FENCE_NS"};
};

TEST_F(MemoryEnvironment, IsQuietByDefault) {
  const auto options = PersistentMemoryOptions::from_environment();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().flush, LineFlush::automatic);
  EXPECT_EQ(options.value().line_ns, 0u);
  EXPECT_EQ(options.value().fence_ns, 0u);
}

TEST_F(MemoryEnvironment, IsUnderstood) {
  ::setenv("PAWL_FLUSH", "clflush", 1);
  ::setenv("PAWL_EMULATE_LINE_NS", "20", 1);
  ::setenv("PAWL_EMULATE_FENCE_NS", "2000", 1);
  auto options = PersistentMemoryOptions::from_environment();
  ASSERT_TRUE(options.ok()) << options.status().text();
  EXPECT_EQ(options.value().flush, LineFlush::clflush);
  EXPECT_EQ(options.value().line_ns, 20u);
  EXPECT_EQ(options.value().fence_ns, 2000u);
  ::setenv("PAWL_EMULATE_LINE_NS", "0", 1);
  options = PersistentMemoryOptions::from_environment();
  ASSERT_TRUE(options.ok()) << options.status().text();
  EXPECT_EQ(options.value().line_ns, 0u);
}

TEST_F(MemoryEnvironment, SaysWhatItTakes) {
  for (const char* const value :
       {"", "19", "2001", "-20", "1us", "0x20", " 20", "99999999999999999999"}) {
    expect_refused("PAWL_EMULATE_LINE_NS", value, "20 to 2000 nanoseconds");
    expect_refused("PAWL_EMULATE_FENCE_NS", value, "20 to 2000 nanoseconds");
  }
  expect_refused("PAWL_FLUSH", "CLWB", "auto, clwb, clflushopt, clflush or none");
  expect_refused("PAWL_FLUSH", "", "auto, clwb, clflushopt, clflush or none");
}

// Slower, and otherwise the same.
TEST(SlowerMemory, CopiesTheSameBytes) {
  auto memory = make_persistent_memory({.line_ns = kEmulatedNsMin, .fence_ns = kEmulatedNsMin});
  ASSERT_TRUE(memory.ok());
  Area area;
  const std::vector<std::byte> from = some_bytes(kCountMax, 3);
  memory.value()->copy(area.bytes.data() + 5, from);
  memory.value()->flush(area.bytes.data(), kAreaBytes);
  memory.value()->fence();
  EXPECT_TRUE(std::equal(from.begin(), from.end(), area.bytes.begin() + 5));
}

}  // namespace
}  // namespace pawl
