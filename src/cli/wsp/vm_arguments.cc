#include "cli/wsp/vm_arguments.h"

#include <cerrno>
#include <filesystem>
#include <limits>

#include "cli/exit_codes.h"
#include "wsp/vm/options.h"

namespace pawl::cli {

namespace {

constexpr std::uint64_t kMemoryBytesMin = std::uint64_t{16} << 20;
constexpr std::uint64_t kMemoryBytesMax = std::uint64_t{1} << 46;
constexpr std::uint32_t kDiskRequestsMaximum = 1024;

Result<std::uint64_t> memory_bytes(const std::string& text) {
  const auto refused = [&text] {
    return Status::failure(EINVAL, "--memory " + text +
                                       ": write a number with M or G, of at least 16M and of "
                                       "whole MiB");
  };
  std::uint64_t bytes = 0;
  std::size_t digits = 0;
  try {
    bytes = std::stoull(text, &digits);
  } catch (const std::exception&) {
    return refused();
  }
  const std::string unit = text.substr(digits);
  const unsigned shift = unit == "G" ? 30 : 20;
  if ((unit != "G" && unit != "M") || bytes > (kMemoryBytesMax >> shift)) return refused();
  bytes <<= shift;
  if (bytes < kMemoryBytesMin) return refused();
  return bytes;
}

}  // namespace

void add_machine_options(CLI::App& verb, VmArguments& arguments) {
  verb.add_option("--memory", arguments.memory, "The guest's memory, with M or G")
      ->capture_default_str()
      ->type_name("SIZE");
  verb.add_option("--disk", arguments.disks,
                  "A disk for the guest, raw or qcow2, as virtio-blk with direct I/O (repeatable)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb.add_option("--disk-requests", arguments.disk_requests,
                  "How many requests to such a disk may be under way at once: a power of two. By "
                  "default as many as a disk of 200 MB/s does in half of the window")
      ->check([](const std::string& text) {
        const unsigned long number = std::strtoul(text.c_str(), nullptr, 10);
        const bool fits =
            number >= 4 && number <= kDiskRequestsMaximum && (number & (number - 1)) == 0;
        return fits ? std::string() : std::string("a power of two from 4 to 1024");
      })
      ->type_name("N");
  verb.add_option("--qemu", arguments.qemu, "The QEMU to start")
      ->capture_default_str()
      ->type_name("PROGRAM");
  add_wsp_options(verb, arguments.watching);
}

Result<wsp::vm::MachineDescription> machine_of(const VmArguments& arguments,
                                               const AfterDashes& after_dashes) {
  wsp::vm::MachineDescription machine;
  machine.qemu = arguments.qemu;
  Result<std::uint64_t> memory = memory_bytes(arguments.memory);
  if (!memory.ok()) return memory.status();
  machine.memory_bytes = memory.value();
  machine.window_ms = arguments.watching.window_ms;
  machine.serial_line = arguments.watching.serial_line;
  if (after_dashes.has_value()) machine.options = *after_dashes;
  PAWL_TRY(wsp::vm::check_options(machine.options));
  // A restore may be asked for from elsewhere.
  for (const std::string& disk : arguments.disks) {
    if (disk.empty()) return Status::failure(EINVAL, "--disk: name a file");
    machine.added_disks.push_back(
        {std::filesystem::absolute(disk).string(), arguments.disk_requests});
  }
  return machine;
}

int exit_code_of_refusal(wsp::vm::Refusal refusal) {
  switch (refusal) {
    case wsp::vm::Refusal::kNone:
      return kExitOk;
    case wsp::vm::Refusal::kNoSave:
    case wsp::vm::Refusal::kHalfSave:
      return kExitMissing;
    case wsp::vm::Refusal::kDamagedMarker:
    case wsp::vm::Refusal::kDamagedDeviceState:
      return kExitDamaged;
    case wsp::vm::Refusal::kNewerFormat:
      return kExitOtherVersion;
    case wsp::vm::Refusal::kOtherGeneration:
    case wsp::vm::Refusal::kOtherOptions:
    case wsp::vm::Refusal::kMemoryReplaced:
    case wsp::vm::Refusal::kMemoryTouched:
    case wsp::vm::Refusal::kDiskReplaced:
    case wsp::vm::Refusal::kDiskChanged:
    case wsp::vm::Refusal::kOtherQemu:
      return kExitForeign;
    case wsp::vm::Refusal::kLoadFailed:
      return kExitFailure;
  }
  return kExitFailure;
}

int exit_code_of_vm_failure(const Status& failure) {
  switch (failure.error_number()) {
    case EINVAL:
      return kExitUsage;
    case EBUSY:
      return kExitInUse;
    case ENOTSUP:
      return kExitUnsafe;
    default:
      return kExitFailure;
  }
}

}  // namespace pawl::cli
