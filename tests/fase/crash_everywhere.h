// Crashes at each event, in all the ways that persistent memory may lose what was not fenced.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "fase/file_image.h"
#include "fase/simulated_crash.h"
#include "pawl/fase.h"
#include "support/temporary_directory.h"

namespace pawl::test {

class FaseTest : public ::testing::Test {
 protected:
  using Act = std::function<void(pawl_fase*)>;

  static constexpr std::uint64_t kSizeBytes = 1 << 20;

  pawl_fase* open();
  // Opens the file, which finishes what was interrupted; at the end its heap must be sound.
  void open_and(const Act& act);

  // Of the open file.
  static std::uint64_t blocks_used();

  struct Crash {
    Unfenced unfenced;
    std::uint64_t seed;
    std::uint64_t event;
  };
  // Crashes `run` at each of its events, and recovers, with crashes meanwhile; then check() looks.
  void crash_everywhere(const Act& run, const Act& check, const std::function<void()>& others = {});

  test::TemporaryDirectory directory_{"/dev/shm"};
  const std::string path_ = directory_ / "file";

 private:
  void crash_recovery(const Crash& crash);
};

}  // namespace pawl::test
