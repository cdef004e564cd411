#include "wsp/vm/options.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "medium/descriptor.h"
#include "wsp/vm/file_identity.h"

namespace pawl::wsp::vm {

namespace {

constexpr std::size_t kOptionsMax = 4096;

struct RefusedOption {
  std::string_view name;
  std::string_view part;  // of the option's value; empty: any
  std::string_view reason;
};

constexpr std::string_view kOurMemory = "the guest's memory is this command's: use --memory";
constexpr std::string_view kOurStart = "this command starts and restores the guest itself";
constexpr std::string_view kTemporary =
    "what the guest writes would go into a temporary file, which is gone when it is restored";
constexpr std::string_view kNvme = "QEMU cannot migrate NVMe disks; use virtio-blk, or --disk";
constexpr std::string_view kShared =
    "QEMU does not migrate a machine whose guest has such a directory mounted";
constexpr std::string_view kGone = "QEMU would leave this command's sight";

constexpr std::array kRefused{
    RefusedOption{"m", "", kOurMemory},
    RefusedOption{"mem-path", "", kOurMemory},
    RefusedOption{"mem-prealloc", "", kOurMemory},
    RefusedOption{"object", "memory-backend", kOurMemory},
    RefusedOption{"machine", "memory-backend", kOurMemory},
    RefusedOption{"M", "memory-backend", kOurMemory},
    RefusedOption{"numa", "", kOurMemory},
    RefusedOption{"device", "memdev=", kOurMemory},
    RefusedOption{"readconfig", "",
                  "options in a file are not seen here: give them on the command line"},
    RefusedOption{"incoming", "", kOurStart},
    RefusedOption{"loadvm", "", kOurStart},
    RefusedOption{"S", "", kOurStart},
    RefusedOption{"preconfig", "", kOurStart},
    RefusedOption{"only-migratable", "", "this command finds by itself what cannot be saved"},
    RefusedOption{"daemonize", "", kGone},
    RefusedOption{"runas", "", kGone},
    RefusedOption{"chroot", "", kGone},
    RefusedOption{"snapshot", "", kTemporary},
    RefusedOption{"drive", "snapshot=on", kTemporary},
    RefusedOption{"drive", "if=none,id=pawl", "ids that begin with pawl are this command's"},
    RefusedOption{"device", "nvme", kNvme},
    RefusedOption{"drive", "if=nvme", kNvme},
    RefusedOption{"virtfs", "", kShared},
    RefusedOption{"device", "virtio-9p", kShared},
    RefusedOption{"qmp", "pawl-qmp", "ids that begin with pawl are this command's"},
    RefusedOption{"mon", "pawl-qmp", "ids that begin with pawl are this command's"},
    RefusedOption{"chardev", "pawl-qmp", "ids that begin with pawl are this command's"},
};

// QEMU takes "-name" and "--name".
std::string_view name_of_option(std::string_view option) {
  if (!option.starts_with('-')) return {};
  option.remove_prefix(1);
  if (option.starts_with('-')) option.remove_prefix(1);
  return option;
}

// Not every file system has direct I/O (tmpfs has not before Linux 6.6, and needs none).
bool has_direct_io(const std::string& path) { return open_disk(path, O_RDONLY | O_DIRECT).ok(); }

// QEMU's option syntax doubles commas.
std::string with_doubled_commas(const std::string& text) {
  std::string doubled;
  for (const char byte : text) {
    doubled += byte;
    if (byte == ',') doubled += byte;
  }
  return doubled;
}

// Direct I/O, so that what the guest wrote is not in a cache of the host's, which would have to be
// written when the guest is stopped; and which is lost with the host.  A short queue would make
// requests of few segments, were they adjusted to it.
void add_disk(std::vector<std::string>& line, const AddedDisk& disk, std::size_t number) {
  const std::string file = "pawl-file" + std::to_string(number);
  const std::string node = "pawl-disk" + std::to_string(number);
  const std::string direct = has_direct_io(disk.path) ? ",cache.direct=on" : "";
  line.insert(
      line.end(),
      {"-blockdev",
       "driver=file,node-name=" + file + direct + ",filename=" + with_doubled_commas(disk.path),
       "-blockdev",
       std::string("driver=") + (disk.format.empty() ? format_of_disk(disk.path) : disk.format) +
           ",node-name=" + node + direct + ",file=" + file,
       "-device",
       "virtio-blk-pci,drive=" + node + ",num-queues=1,seg-max-adjust=off,queue-size=" +
           std::to_string(disk.requests_max) + ",id=pawl-disk-device" + std::to_string(number)});
}

}  // namespace

std::string format_of_disk(const std::string& path) {
  std::array<char, 4> magic{};
  const Result<Descriptor> file = open_disk(path, O_RDONLY);
  const bool is_qcow2 =
      file.ok() && ::pread(file.value().get(), magic.data(), magic.size(), 0) == ssize_t{4} &&
      std::string_view(magic.data(), magic.size()) == std::string_view("QFI\xfb", 4);
  return is_qcow2 ? "qcow2" : "raw";
}

Status check_options(const std::vector<std::string>& options) {
  if (options.size() > kOptionsMax) return Status::failure(EINVAL, "too many options of QEMU's");
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string_view name = name_of_option(options[i]);
    if (name.empty()) continue;
    const std::string_view value =
        i + 1 < options.size() ? std::string_view(options[i + 1]) : std::string_view();
    for (const RefusedOption& refused : kRefused) {
      if (name != refused.name || value.find(refused.part) == std::string_view::npos) continue;
      return Status::failure(EINVAL,
                             "-" + std::string(name) +
                                 (refused.part.empty() ? std::string() : " " + std::string(value)) +
                                 " cannot be: " + std::string(refused.reason));
    }
  }
  return {};
}

bool choose_display(const std::vector<std::string>& options) {
  constexpr std::array<std::string_view, 6> kOfDisplay{"display", "nographic", "vnc",
                                                       "curses",  "sdl",       "spice"};
  return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return std::find(kOfDisplay.begin(), kOfDisplay.end(), name_of_option(option)) !=
           kOfDisplay.end();
  });
}

std::vector<std::string> command_line(const MachineDescription& description,
                                      const std::string& memory_path, int qmp_descriptor,
                                      Start start) {
  std::vector<std::string> line{description.qemu};
  line.insert(line.end(), description.options.begin(), description.options.end());
  line.insert(line.end(), {"-m", "size=" + std::to_string(description.memory_bytes >> 20) + "M",  //
                           "-object",
                           "memory-backend-file,id=pawl-memory,share=on,size=" +
                               std::to_string(description.memory_bytes) +
                               ",mem-path=" + with_doubled_commas(memory_path),
                           "-machine", "memory-backend=pawl-memory",  //
                           "-chardev", "socket,id=pawl-qmp,fd=" + std::to_string(qmp_descriptor),
                           "-mon", "chardev=pawl-qmp,mode=control", "-S"});
  for (std::size_t i = 0; i < description.added_disks.size(); ++i)
    add_disk(line, description.added_disks[i], i);
  if (start == Start::kRestored) line.insert(line.end(), {"-incoming", "defer"});
  return line;
}

}  // namespace pawl::wsp::vm
