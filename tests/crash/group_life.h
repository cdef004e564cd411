// The life of a program that has two files in a group, and what is found after a power cut in it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "crash/recorder.h"
#include "support/memory_medium.h"

namespace pawl::test {

// Volumes, and files of the disk: the one that names the group, and the two that are in it.
inline constexpr std::size_t kGroupVolume = 0;
inline constexpr std::size_t kGroupVolumes = 3;

using GroupDisks = std::vector<StoredDisk>;
using GroupContents = std::array<Content, kGroupVolumes>;

struct GroupLifeOptions {
  unsigned seed = 1;
  unsigned steps = 40;
  Fault fault;
};

struct GroupLifeEnd {
  // A commit of the group has the same number in each volume.
  Trace trace;
  std::string wrong;  // empty: nothing
  std::optional<std::size_t> failed_before;
  std::uint64_t operations = 0;
};

// Two files of random content, and an empty one.
GroupDisks new_group(unsigned seed);
// The files of `start` hold `contents` once recovered.
GroupLifeEnd live(const GroupLifeOptions& options, const GroupDisks& start,
                  const GroupContents& contents);

// In which order what a cut left is recovered.
enum class Way { whole, first_alone, second_alone, each_alone };
inline constexpr std::array kWays = {Way::whole, Way::first_alone, Way::second_alone,
                                     Way::each_alone};

// What is found then; what is wrong with it, if anything is.
struct FoundGroup {
  GroupContents contents;
  std::string wrong;
};
FoundGroup recover_group(const GroupDisks& disks, Way way);
// The same, recorded.
Trace record_recovery(const GroupDisks& disks, Way way, unsigned seed);

}  // namespace pawl::test
