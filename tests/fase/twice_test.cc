// Regions that are executed twice: those that may be come out the same, and all others are found.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "fase/crash_everywhere.h"
#include "fase/hand_made.h"
#include "fase/rehearsal.h"

namespace pawl {
namespace {

using test::LiveIns;
using test::store;
using test::Words;

struct Data {
  std::uint64_t a;
  std::uint64_t b;
};

// One region, from a frame to the end of the section, which does what `mode` says.
enum Mode : std::uint64_t {
  kSound,
  kAllocates,
  kOverwritesWhatItRead,
  kStoresElsewhere,
  kLeavesOtherBytes,
  kComputesOtherValues,
  kEndsElsewhere,
  kAllocatesOtherSizes,
  kReturns,
};

extern const pawl_fase_function functions[];
int turn = 0;

void region(pawl_fase* fase, Data* data, std::uint64_t mode) {
  ++turn;
  switch (mode) {
    case kSound:
      store(data->a, data->b + 1);
      break;
    case kAllocates: {
      auto* const block = static_cast<std::uint64_t*>(pawl_fase_calloc(fase, 1, 100));
      store(*block, std::uint64_t{5});
      EXPECT_EQ(pawl_fase_free(fase, block), 0);
      store(data->a, test::word_of(block));
      break;
    }
    case kOverwritesWhatItRead:
      store(data->a, data->a + 1);
      break;
    case kStoresElsewhere:
      if (turn > 1) store((data + 100)->a, std::uint64_t{1});
      break;
    case kLeavesOtherBytes:
      store(data->a, static_cast<std::uint64_t>(turn));
      break;
    case kEndsElsewhere:
      if (turn > 1) return;
      break;
    case kAllocatesOtherSizes:
      pawl_fase_malloc(fase, static_cast<std::size_t>(turn));
      break;
    default:
      break;
  }
  // A byte in a word of its own: what else is there is anything.
  std::uint64_t words[2];
  words[0] = test::word_of(data);
  *reinterpret_cast<volatile char*>(&words[1]) =
      static_cast<char>(mode == kComputesOtherValues ? turn : 1);
  if (mode != kReturns) {
    asm volatile("" : : "r"(words) : "memory");
    pawl_fase_cut(functions, 1, words);
    store(data->b, std::uint64_t{1});
    pawl_fase_section_end(nullptr, 0, nullptr);
  }
}

void resume(std::uint32_t number, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  if (number == 0)
    return region(words.get<pawl_fase*>(0), words.get<Data*>(1), words.get<std::uint64_t>(2));
  store(words.get<Data*>(0)->b, std::uint64_t{1});
  pawl_fase_section_end(nullptr, 0, nullptr);
}

void act(pawl_fase* fase, Data* data, std::uint64_t mode) {
  turn = 0;
  pawl_fase_section_begin();
  const LiveIns live_ins(fase, data, mode);
  pawl_fase_cut(functions, 0, &live_ins);
  region(fase, data, mode);
}

constexpr pawl_fase_region kRegions[] = {{11, 24, PAWL_FASE_AT_CUT}, {22, 16, PAWL_FASE_AT_CUT}};
const pawl_fase_function functions[] = {
    {test::address_of(&act), resume, "act", "twice.c", kRegions, 2, 0}};
[[maybe_unused]] const bool registered = [] {
  pawl_fase_register(functions, functions + 1);
  return true;
}();

class FaseTwice : public test::FaseTest {
 protected:
  FaseTwice() {
    ::setenv(fase::kTwiceVariable, "100", 1);
    open_and([](pawl_fase* fase) {
      EXPECT_EQ(pawl_fase_set_root(fase, pawl_fase_calloc(fase, 200, sizeof(Data))), 0);
    });
  }
  ~FaseTwice() override { ::unsetenv(fase::kTwiceVariable); }
  void run(std::uint64_t mode) {
    open_and([=](pawl_fase* fase) { act(fase, static_cast<Data*>(pawl_fase_root(fase)), mode); });
  }
};
using FaseTwiceDeathTest = FaseTwice;

TEST_F(FaseTwice, SoundRegionsComeOutTheSame) {
  run(kSound);
  // The first time, and twice again.
  EXPECT_EQ(turn, 3);
}

TEST_F(FaseTwice, BlocksAreTheSameAgain) {
  run(kAllocates);
  EXPECT_EQ(turn, 3);
  open_and([](pawl_fase*) { EXPECT_EQ(blocks_used(), 1u); });
}

TEST_F(FaseTwice, NothingIsExecutedAgainUnasked) {
  ::setenv(fase::kTwiceVariable, "0", 1);
  run(kOverwritesWhatItRead);
  EXPECT_EQ(turn, 1);
}

TEST_F(FaseTwice, WhatIsNoPercentageIsRefused) {
  for (const char* const value : {"101", "-1", "x", "5x", ""}) {
    ::setenv(fase::kTwiceVariable, value, 1);
    EXPECT_EQ(pawl_fase_open(path_.c_str(), nullptr), nullptr);
    EXPECT_EQ(errno, EINVAL) << value;
  }
}

TEST_F(FaseTwiceDeathTest, OtherRegionsAreFound) {
  const std::string where = "twice.c:11: in act: .*";
  EXPECT_DEATH(run(kOverwritesWhatItRead), where + "other bytes");
  EXPECT_DEATH(run(kStoresElsewhere), where + "stores elsewhere");
  EXPECT_DEATH(run(kLeavesOtherBytes), where + "other bytes");
  EXPECT_DEATH(run(kComputesOtherValues), where + "other values: byte 8");
  EXPECT_DEATH(run(kEndsElsewhere), where + "came to a cut, and now to a return");
  EXPECT_DEATH(run(kAllocatesOtherSizes), where + "another size");
}

}  // namespace
}  // namespace pawl
