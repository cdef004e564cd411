#include "fase/crash_everywhere.h"

#include "fase/thread.h"

namespace pawl::test {
namespace {

struct Draws {
  Unfenced unfenced;
  std::uint64_t seeds;
};
// A sanitizer looks at what is executed, which is the same whatever a crash leaves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr Draws kDraws[] = {{Unfenced::random, 1}};
#else
constexpr Draws kDraws[] = {{Unfenced::kept, 1}, {Unfenced::lost, 1}, {Unfenced::random, 4}};
#endif

}  // namespace

pawl_fase* FaseTest::open() {
  pawl_fase_options options;
  EXPECT_EQ(pawl_fase_options_init(&options), 0);
  options.size_bytes_max = kSizeBytes;
  return pawl_fase_open(path_.c_str(), &options);
}

void FaseTest::open_and(const Act& act) {
  pawl_fase* const fase = open();
  ASSERT_NE(fase, nullptr) << pawl_last_error();
  act(fase);
  fase::open_file()->blocks().check([](const std::string& fault) { ADD_FAILURE() << fault; });
  EXPECT_EQ(pawl_fase_close(fase), 0) << pawl_last_error();
}

std::uint64_t FaseTest::blocks_used() {
  const auto information = fase::open_file()->blocks().information();
  EXPECT_TRUE(information.ok());
  return information.value().blocks_used;
}

void FaseTest::crash_everywhere(const Act& run, const Act& check,
                                const std::function<void()>& others) {
  const FileImage before = FileImage::read(path_);
  for (const auto [unfenced, seeds] : kDraws) {
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      for (std::uint64_t event = 1;; ++event) {
        SCOPED_TRACE("event " + std::to_string(event) + ", unfenced " +
                     std::to_string(static_cast<int>(unfenced)) + ", seed " + std::to_string(seed));
        before.write(path_);
        if (!crashes(before, [&] { open_and(run); }, event, unfenced, seed, others)) break;
        crash_recovery({unfenced, seed, event});
        open_and(check);
        if (HasFailure()) return;
      }
    }
  }
}

// Some times, at events that are others each time.
void FaseTest::crash_recovery(const Crash& crash) {
  constexpr std::uint64_t kFirst = 17;
  constexpr std::uint64_t kStep = 13;
  constexpr std::uint64_t kEnd = 40;
  for (std::uint64_t event = 1 + (crash.seed + crash.event) % kFirst; event < kEnd;
       event += kStep) {
    const FileImage before = FileImage::read(path_);
    if (!crashes(before, [&] { open_and([](pawl_fase*) {}); }, event, crash.unfenced, crash.seed))
      return;
  }
}

}  // namespace pawl::test
