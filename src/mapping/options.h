// Options of a mapping: defaults, environment, and their bounds.
#pragma once

#include <cstdint>

#include "medium/open_medium.h"
#include "pawl/pawl.h"

namespace pawl {

enum class TrackerChoice { automatic = 0, scan = 1, fault = 2, store = 3 };
enum class ApplyChoice { async = 0, eager = 1 };
enum class OtherProcesses { store = 0, never_store = 1 };
enum class DurabilityChoice { flush = 0, on_fail = 1 };

inline constexpr std::uint64_t kJournalSizeDefault = std::uint64_t{32} << 20;
inline constexpr std::uint64_t kJournalSizeMin = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kJournalSizeMax = std::uint64_t{1} << 40;
// With how much a journal begins, for a file of so many bytes: this share of them, and no less than
// the smallest journal.
inline constexpr std::uint64_t kFileBytesPerJournalByte = 1024;
// The paper's is 128.  With more, a page that is stored to again and again is applied less often.
inline constexpr std::uint32_t kApplyThresholdDefault = 4096;
inline constexpr std::uint32_t kApplyThresholdMax = 1u << 20;
inline constexpr std::uint32_t kIdlePollDefaultUs = 200;  // as long as Linux's haltpoll
inline constexpr std::uint32_t kIdlePollMaxUs = 10'000;
inline constexpr std::uint32_t kHoldUpMaxMs = 3'600'000;

struct Options {
  std::uint64_t journal_size_bytes = kJournalSizeDefault;
  TrackerChoice tracker = TrackerChoice::automatic;
  MediumKind medium = MediumKind::automatic;
  ApplyChoice apply = ApplyChoice::async;
  std::uint32_t apply_threshold_pages = kApplyThresholdDefault;
  std::uint64_t resident_bytes_max = 0;  // 0: a quarter of RAM
  std::uint32_t idle_poll_us = kIdlePollDefaultUs;
  DurabilityChoice durability = DurabilityChoice::flush;
  std::uint32_t hold_up_ms = 0;  // 0: not known, and the durability is flush
  OtherProcesses other_processes = OtherProcesses::store;
  bool verify = false;  // each commit compares every page, and reports what no store marked
  const void* mapped_by = nullptr;  // the program's code that asked, for that report

  // The defaults, then PAWL_JOURNAL_SIZE, PAWL_TRACKER, PAWL_MEDIUM, PAWL_APPLY,
  // PAWL_APPLY_THRESHOLD, PAWL_RESIDENT_MAX, PAWL_IDLE_POLL_US, PAWL_DURABILITY, PAWL_HOLD_UP_MS,
  // PAWL_OTHER_PROCESSES and PAWL_VERIFY.  Sizes take K, M, G suffixes.  EINVAL names the variable
  // and what it takes.
  static Result<Options> from_environment();
  Status validate() const;
  // Of a new journal for a file of so many bytes; and to how many it grows.  With on-fail that is
  // the same: what is written to let it grow would be flushed with commits when the power fails.
  std::uint64_t first_journal_bytes(std::uint64_t file_bytes) const;
  std::uint64_t journal_bytes_max() const { return round_up(journal_size_bytes, kPageBytes); }

  // The public struct.  EINVAL when it was not filled by pawl_options_init of this version.
  static Result<Options> from_public(const pawl_options& given);
  pawl_options to_public() const;
};

}  // namespace pawl
