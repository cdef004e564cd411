#include "mapping/options.h"

#include <sys/sysinfo.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "medium/environment.h"

namespace pawl {
namespace {

constexpr std::uint64_t kResidentShareOfMemory = 4;

Status wrong(const char* name, const char* value, const char* wanted) {
  return Status::failure(
      EINVAL, PAWL_ERROR_INVALID_VARIABLE,
      std::string(name) + "=" + value + " is not understood: it takes " + wanted);
}

// A number of bytes with an optional suffix K, M or G.
std::optional<std::uint64_t> parse_bytes(const char* text) {
  if (*text < '0' || *text > '9') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (errno != 0) return std::nullopt;
  unsigned shift = 0;
  switch (*end) {
    case 'K':
    case 'k':
      shift = 10;
      break;
    case 'M':
    case 'm':
      shift = 20;
      break;
    case 'G':
    case 'g':
      shift = 30;
      break;
    case '\0':
      return number;
    default:
      return std::nullopt;
  }
  if (end[1] != '\0' || number > (~std::uint64_t{0} >> shift)) return std::nullopt;
  return static_cast<std::uint64_t>(number) << shift;
}

template <class Choice>
Status read_choice(const char* name, const char* wanted,
                   std::initializer_list<std::pair<std::string_view, Choice>> known,
                   Choice& choice) {
  const char* const value = environment_variable(name);
  if (value == nullptr) return {};
  for (const auto& [word, meant] : known) {
    if (word != value) continue;
    choice = meant;
    return {};
  }
  return wrong(name, value, wanted);
}

// PAWL_VERIFY is no option of a program: it tests one.
Status read_verify(bool& verify) {
  const char* const value = environment_variable("PAWL_VERIFY");
  if (value == nullptr) return {};
  if (std::strcmp(value, "0") != 0 && std::strcmp(value, "1") != 0)
    return wrong("PAWL_VERIFY", value, "0 or 1");
  verify = *value == '1';
  return {};
}

}  // namespace

Result<Options> Options::from_environment() {
  Options options;
  if (const char* value = environment_variable("PAWL_JOURNAL_SIZE")) {
    const auto bytes = parse_bytes(value);
    if (!bytes)
      return wrong("PAWL_JOURNAL_SIZE", value, "a number of bytes, with K, M or G if you like");
    options.journal_size_bytes = *bytes;
  }
  PAWL_TRY(read_choice("PAWL_TRACKER", "auto, scan, fault or store",
                       {{"auto", TrackerChoice::automatic},
                        {"scan", TrackerChoice::scan},
                        {"fault", TrackerChoice::fault},
                        {"store", TrackerChoice::store}},
                       options.tracker));
  PAWL_TRY(read_choice("PAWL_MEDIUM", "auto, block or memory",
                       {{"auto", MediumKind::automatic},
                        {"block", MediumKind::block},
                        {"memory", MediumKind::memory}},
                       options.medium));
  PAWL_TRY(read_choice("PAWL_APPLY", "async or eager",
                       {{"async", ApplyChoice::async}, {"eager", ApplyChoice::eager}},
                       options.apply));
  if (const char* value = environment_variable("PAWL_APPLY_THRESHOLD")) {
    const auto pages = parse_bytes(value);
    if (!pages || *pages > kApplyThresholdMax)
      return wrong("PAWL_APPLY_THRESHOLD", value, "a number of pages up to 1048576");
    options.apply_threshold_pages = static_cast<std::uint32_t>(*pages);
  }
  if (const char* value = environment_variable("PAWL_RESIDENT_MAX")) {
    const auto bytes = parse_bytes(value);
    if (!bytes)
      return wrong("PAWL_RESIDENT_MAX", value, "a number of bytes, with K, M or G if you like");
    options.resident_bytes_max = *bytes;
  }
  if (const char* value = environment_variable("PAWL_IDLE_POLL_US")) {
    const auto longest = parse_bytes(value);
    if (!longest || *longest > kIdlePollMaxUs)
      return wrong("PAWL_IDLE_POLL_US", value, "a number of microseconds up to 10000");
    options.idle_poll_us = static_cast<std::uint32_t>(*longest);
  }
  PAWL_TRY(read_choice("PAWL_DURABILITY", "flush or on-fail",
                       {{"flush", DurabilityChoice::flush}, {"on-fail", DurabilityChoice::on_fail}},
                       options.durability));
  if (const char* value = environment_variable("PAWL_HOLD_UP_MS")) {
    const auto hold_up = parse_bytes(value);
    if (!hold_up || *hold_up > kHoldUpMaxMs)
      return wrong("PAWL_HOLD_UP_MS", value, "a number of milliseconds up to 3600000");
    options.hold_up_ms = static_cast<std::uint32_t>(*hold_up);
  }
  PAWL_TRY(
      read_choice("PAWL_OTHER_PROCESSES", "store or never-store",
                  {{"store", OtherProcesses::store}, {"never-store", OtherProcesses::never_store}},
                  options.other_processes));
  PAWL_TRY(read_verify(options.verify));
  if (options.resident_bytes_max == 0) {
    struct sysinfo memory{};
    ::sysinfo(&memory);
    options.resident_bytes_max =
        std::uint64_t{memory.totalram} * memory.mem_unit / kResidentShareOfMemory;
  }
  PAWL_TRY(options.validate());
  return options;
}

Status Options::validate() const {
  if (journal_size_bytes < kJournalSizeMin || journal_size_bytes > kJournalSizeMax) {
    return Status::failure(EINVAL, "a journal of " + std::to_string(journal_size_bytes) +
                                       " bytes cannot be: it takes " +
                                       std::to_string(kJournalSizeMin) + " to " +
                                       std::to_string(kJournalSizeMax));
  }
  if (tracker < TrackerChoice::automatic || tracker > TrackerChoice::store)
    return Status::failure(EINVAL, "no such tracker; there are auto, scan, fault and store");
  if (medium < MediumKind::automatic || medium > MediumKind::memory)
    return Status::failure(EINVAL, "no such medium; there are auto, block and memory");
  if (apply < ApplyChoice::async || apply > ApplyChoice::eager)
    return Status::failure(EINVAL, "no such way to apply; there are async and eager");
  if (apply_threshold_pages > kApplyThresholdMax)
    return Status::failure(EINVAL, "the apply threshold takes at most " +
                                       std::to_string(kApplyThresholdMax) + " pages");
  if (durability < DurabilityChoice::flush || durability > DurabilityChoice::on_fail)
    return Status::failure(EINVAL, "no such durability; there are flush and on-fail");
  if (hold_up_ms > kHoldUpMaxMs)
    return Status::failure(
        EINVAL, "a hold-up time takes at most " + std::to_string(kHoldUpMaxMs) + " milliseconds");
  if (durability == DurabilityChoice::on_fail && hold_up_ms == 0)
    return Status::failure(EINVAL,
                           "the durability on-fail takes a hold-up time: for how many milliseconds "
                           "a battery keeps machine and disk going (PAWL_HOLD_UP_MS)");
  if (other_processes < OtherProcesses::store || other_processes > OtherProcesses::never_store)
    return Status::failure(EINVAL,
                           "no such choice for other processes; there are store and never-store");
  if (idle_poll_us > kIdlePollMaxUs)
    return Status::failure(
        EINVAL, "a wait is polled for at most " + std::to_string(kIdlePollMaxUs) + " microseconds");
  return {};
}

std::uint64_t Options::first_journal_bytes(std::uint64_t file_bytes) const {
  if (durability == DurabilityChoice::on_fail) return journal_bytes_max();
  const std::uint64_t share = round_up(file_bytes / kFileBytesPerJournalByte, kPageBytes);
  return std::min(journal_bytes_max(), std::max(kJournalSizeMin, share));
}

Result<Options> Options::from_public(const pawl_options& given) {
  if (given.struct_size_bytes != sizeof given)
    return Status::failure(
        EINVAL, "options were not filled by pawl_options_init, or by one of another version");
  Options options;
  options.journal_size_bytes = given.journal_size_bytes;
  options.tracker = static_cast<TrackerChoice>(given.tracker);
  options.medium = static_cast<MediumKind>(given.medium);
  options.apply = static_cast<ApplyChoice>(given.apply);
  options.apply_threshold_pages = given.apply_threshold_pages;
  options.resident_bytes_max = given.resident_bytes_max;
  options.idle_poll_us = given.idle_poll_us;
  options.durability = static_cast<DurabilityChoice>(given.durability);
  options.hold_up_ms = given.hold_up_ms;
  options.other_processes = static_cast<OtherProcesses>(given.other_processes);
  PAWL_TRY(read_verify(options.verify));
  return options;
}

pawl_options Options::to_public() const {
  pawl_options options{};
  options.struct_size_bytes = sizeof options;
  options.journal_size_bytes = journal_size_bytes;
  options.tracker = static_cast<int>(tracker);
  options.medium = static_cast<int>(medium);
  options.apply = static_cast<int>(apply);
  options.apply_threshold_pages = apply_threshold_pages;
  options.resident_bytes_max = resident_bytes_max;
  options.idle_poll_us = idle_poll_us;
  options.durability = static_cast<int>(durability);
  options.hold_up_ms = hold_up_ms;
  options.other_processes = static_cast<int>(other_processes);
  return options;
}

}  // namespace pawl
