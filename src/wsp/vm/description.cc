#include "wsp/vm/description.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>

#include "medium/checksum.h"

namespace pawl::wsp::vm {

namespace {

using DescriptionJson = nlohmann::ordered_json;

constexpr std::size_t kDescriptionBytesMax = std::size_t{1} << 20;
constexpr double kDiskBytesPerMs = 200'000;
constexpr double kRequestBytesMax = 1280 * 1024;
constexpr std::uint32_t kRequestsMin = 4;  // QEMU's queue-size takes no less
constexpr std::uint32_t kRequestsMax = 128;

DescriptionJson json_of(const MachineDescription& description) {
  DescriptionJson disks = DescriptionJson::array();
  for (const AddedDisk& disk : description.added_disks)
    disks.push_back(
        {{"path", disk.path}, {"requests_max", disk.requests_max}, {"format", disk.format}});
  return {{"format", 1},
          {"qemu", description.qemu},
          {"memory_bytes", description.memory_bytes},
          {"added_disks", disks},
          {"options", description.options},
          {"disk_files", description.disk_files},
          {"window_ms", description.window_ms},
          {"serial_line", description.serial_line}};
}

// Where others would be made to fit.
bool has_whole_numbers(const DescriptionJson& json) {
  const DescriptionJson& disks = json.at("added_disks");
  return json.at("memory_bytes").is_number_unsigned() &&
         std::all_of(disks.begin(), disks.end(), [](const DescriptionJson& disk) {
           const DescriptionJson& requests = disk.at("requests_max");
           return requests.is_number_unsigned() &&
                  requests.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max();
         });
}

MachineDescription of_json(const DescriptionJson& json) {
  MachineDescription read;
  read.qemu = json.at("qemu");
  read.memory_bytes = json.at("memory_bytes");
  for (const DescriptionJson& disk : json.at("added_disks"))
    read.added_disks.push_back(
        {disk.at("path"), disk.at("requests_max"), disk.value("format", "")});
  read.options = json.at("options").get<std::vector<std::string>>();
  read.disk_files = json.at("disk_files").get<std::vector<std::string>>();
  read.window_ms = json.at("window_ms");
  read.serial_line = json.at("serial_line");
  return read;
}

std::string words_of(const std::vector<AddedDisk>& disks) {
  std::string words;
  for (const AddedDisk& disk : disks) words += " --disk " + disk.path;
  return words.empty() ? " no --disk" : words;
}

// Of QEMU's options, the first in which they differ.
std::string option_at(const std::vector<std::string>& options, std::size_t index) {
  return index < options.size() ? "'" + options[index] + "'" : "nothing more";
}

}  // namespace

std::string MachineDescription::difference_from(const MachineDescription& other) const {
  if (qemu != other.qemu) return "it has --qemu " + qemu + ", and not " + other.qemu;
  if (memory_bytes != other.memory_bytes) {
    return "it has --memory " + std::to_string(memory_bytes >> 20) + "M, and not " +
           std::to_string(other.memory_bytes >> 20) + "M";
  }
  if (const std::string ours = words_of(added_disks), theirs = words_of(other.added_disks);
      ours != theirs)
    return "it has" + ours + ", and not" + theirs;
  const auto differing =
      std::mismatch(options.begin(), options.end(), other.options.begin(), other.options.end());
  if (differing.first != options.end() || differing.second != other.options.end()) {
    const auto index = static_cast<std::size_t>(differing.first - options.begin());
    return "among QEMU's options it has " + option_at(options, index) + ", and not " +
           option_at(other.options, index);
  }
  return "it has other --disk-requests";
}

bool MachineDescription::is_same_machine(const MachineDescription& other) const {
  const auto machine = [](const MachineDescription& from, const MachineDescription& against) {
    MachineDescription same = from;
    same.disk_files.clear();
    for (std::size_t i = 0; i < same.added_disks.size(); ++i) {
      AddedDisk& disk = same.added_disks[i];
      disk.format.clear();
      if (disk.requests_max == 0 && i < against.added_disks.size())
        disk.requests_max = against.added_disks[i].requests_max;
    }
    same.window_ms = 0;
    same.serial_line.clear();
    return text_of(same);
  };
  return machine(*this, other) == machine(other, *this);
}

std::string text_of(const MachineDescription& description) {
  // Options are bytes: those that are no UTF-8 are shown, but cannot be kept.
  return json_of(description).dump(2, ' ', false, DescriptionJson::error_handler_t::replace) + '\n';
}

Result<MachineDescription> parse_description(const std::string& text) {
  try {
    const DescriptionJson json = DescriptionJson::parse(text);
    if (json.at("format") != 1)
      return Status::failure(ENOTSUP, "the description was written by a newer Pawl");
    if (!has_whole_numbers(json))
      return Status::failure(EINVAL, "this describes no machine: a size is no whole number");
    return of_json(json);
  } catch (const DescriptionJson::exception& exception) {
    return Status::failure(EINVAL, std::string("this describes no machine: ") + exception.what());
  }
}

Status write_description(const MachineDescription& description, const MachineDirectory& directory) {
  return directory.files().write_file(kDescriptionFile, text_of(description));
}

Result<StoredDescription> read_description(const MachineDirectory& directory) {
  Result<std::string> text = directory.files().read_file(kDescriptionFile, kDescriptionBytesMax);
  if (!text.ok()) {
    const bool is_none = text.status().error_number() == EFBIG;
    return is_none ? Status::failure(EINVAL, text.status().text()) : text.status();
  }
  Result<MachineDescription> parsed = parse_description(text.value());
  if (!parsed.ok()) {
    return Status::failure(EINVAL,
                           directory.path_of(kDescriptionFile) + ": " + parsed.status().text());
  }
  return StoredDescription{std::move(parsed.value()),
                           checksum(text.value().data(), text.value().size())};
}

std::uint32_t disk_requests_max(double window_ms) {
  const double requests = window_ms / 2 * kDiskBytesPerMs / kRequestBytesMax;
  if (requests >= kRequestsMax) return kRequestsMax;
  if (requests <= kRequestsMin) return kRequestsMin;
  return std::bit_floor(static_cast<std::uint32_t>(requests));
}

void settle_requests(MachineDescription& description) {
  for (AddedDisk& disk : description.added_disks)
    if (disk.requests_max == 0) disk.requests_max = disk_requests_max(description.window_ms);
}

}  // namespace pawl::wsp::vm
