#include "cli/on_fail_findings.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <filesystem>
#include <fstream>

#include "cli/text.h"
#include "journal/flush_budget.h"
#include "medium/descriptor.h"

namespace pawl::cli {
namespace {

constexpr const char* kPowerSupplies = "/sys/class/power_supply";
constexpr std::uint64_t kMeasuredBytes = std::uint64_t{4} << 20;
constexpr std::chrono::milliseconds kHoldUps[] = {std::chrono::milliseconds(100),
                                                  std::chrono::milliseconds(1000)};

std::string first_word(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Of the machine, and not of a mouse.
std::string batteries() {
  std::string names;
  std::error_code none;
  for (const auto& supply : std::filesystem::directory_iterator(kPowerSupplies, none)) {
    const std::string type = first_word(supply.path() / "type");
    const bool is_battery = type == "Battery" || type == "UPS";
    if (!is_battery || first_word(supply.path() / "scope") == "Device") continue;
    names += (names.empty() ? "" : ", ") + supply.path().filename().string();
  }
  return names;
}

// One after the other: budgets that there are at the same time share it.
Result<std::string> measure(const std::string& directory) {
  Descriptor descriptor(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!descriptor.valid()) return FailedCall{errno, "no file can be made here"};
  DescriptorFile file(std::move(descriptor), "a file in " + directory);
  PAWL_TRY(file.reserve(0, kMeasuredBytes));
  std::string text;
  for (const auto hold_up : kHoldUps) {
    journal::FlushBudget budget(hold_up, kMeasuredBytes);
    PAWL_TRY(journal::measure_flushes(file, 0, kMeasuredBytes, budget));
    text += text.empty() ? "" : ", ";
    text += fmt::format("{} in {} ms", size_text(budget.bytes_max()), hold_up.count());
  }
  return text;
}

}  // namespace

Findings examine_on_fail(const std::string& directory) {
  const auto outstanding = measure(directory);
  if (!outstanding.ok()) {
    return {{"on-fail", "not measured", Level::note, outstanding.status().text()}};
  }
  const std::string supplies = batteries();
  return {
      {"on-fail", outstanding.value(), Level::note,
       "so much may be unflushed when the power fails, if a battery keeps machine and disk going "
       "for so long (PAWL_DURABILITY=on-fail, PAWL_HOLD_UP_MS); " +
           (supplies.empty() ? "the kernel knows of none here"
                             : "the kernel knows of " + supplies)}};
}

}  // namespace pawl::cli
