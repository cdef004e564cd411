#include "wsp/vm/qemu_answers.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "wsp/vm/marker.h"

namespace pawl::wsp::vm {

namespace {

using QmpJson = Qmp::Json;

std::string node_in_words(const QmpJson& node) {
  return "the node " + Qmp::text_in(node, "node-name") + " (" + Qmp::text_in(node, "drv") + ", " +
         Qmp::text_in(node, "file") + ", upon \"" + Qmp::text_in(node, "backing_file") +
         "\", depth " + std::to_string(Qmp::number_in(node, "backing_file_depth")) + ")";
}

std::string disk_in_words(const QmpJson& disk) {
  return "the disk " + Qmp::text_in(disk, "device") + Qmp::text_in(disk, "qdev") +
         " with the node " + Qmp::text_in(Qmp::part_in(disk, "inserted"), "node-name", "none");
}

std::string device_in_words(const QmpJson& device) {
  return "the device " + Qmp::text_in(device, "name") + " (" + Qmp::text_in(device, "type") + ")";
}

// Each node by itself, or QEMU would tell of all that are below it every time.
QmpJson flat() { return {{"flat", true}}; }
QmpJson nothing() { return {}; }
QmpJson of_named_devices() { return {{"path", "/machine/peripheral"}}; }
QmpJson of_nameless_devices() { return {{"path", "/machine/peripheral-anon"}}; }

// Processors and memory that are plugged in are devices too.
constexpr std::array<PartQuery, kPartQueriesCount> kPartQueries{
    PartQuery{"query-named-block-nodes", flat, node_in_words},
    PartQuery{"query-block", nothing, disk_in_words},
    PartQuery{"qom-list", of_named_devices, device_in_words},
    PartQuery{"qom-list", of_nameless_devices, device_in_words},
};

// Block drivers that are a file or a disk of the host's, and those that keep nothing.
bool is_host_file(const std::string& driver) { return driver == "file" || driver == "host_device"; }

bool is_without_storage(const std::string& driver) {
  return driver == "null-co" || driver == "null-aio";
}

// Drivers that hand on to another node.
bool is_on_another(const QmpJson& node) {
  constexpr std::array kFormats{"raw",      "qcow2",        "qcow", "qed", "vdi", "vmdk",
                                "throttle", "copy-on-read", "luks", "vpc", "vhdx"};
  const std::string driver = Qmp::text_in(node, "drv");
  return std::find(kFormats.begin(), kFormats.end(), driver) != kFormats.end();
}

}  // namespace

std::string version_in(const Qmp::Json& answer) {
  const QmpJson number = Qmp::part_in(answer, "qemu");
  std::string version = std::to_string(Qmp::number_in(number, "major")) + '.' +
                        std::to_string(Qmp::number_in(number, "minor")) + '.' +
                        std::to_string(Qmp::number_in(number, "micro")) + ' ' +
                        Qmp::text_in(answer, "package");
  version.resize(std::min({version.size(), kVersionTextBytes - 1, version.find('\0')}));
  return version;
}

const std::array<PartQuery, kPartQueriesCount>& part_queries() { return kPartQueries; }

Result<std::vector<std::string>> disk_files_in(const Qmp::Json& nodes) {
  std::vector<std::string> files;
  for (const QmpJson& node : nodes) {
    const std::string driver = Qmp::text_in(node, "drv");
    if (is_without_storage(driver)) continue;
    std::string file = Qmp::text_in(node, "file");
    if (Qmp::is_true_in(Qmp::part_in(node, "cache"), "no-flush")) {
      return Status::failure(ENOTSUP,
                             "the disk " + file +
                                 " is not flushed (cache=unsafe): what the guest takes for "
                                 "durable would be lost with the host");
    }
    if (is_on_another(node)) continue;
    if (!is_host_file(driver)) {
      return Status::failure(ENOTSUP, "the disk " + file + " (" + driver +
                                          ") is no file of this machine: whether it was changed "
                                          "after a save cannot be known");
    }
    // A restore, or a look at it, may be asked for from elsewhere.
    std::error_code error;
    if (!file.empty()) file = std::filesystem::absolute(file, error).string();
    if (error) return FailedCall{error.value(), "cannot tell which file a disk is"};
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
  }
  if (files.size() > kDisksMax) {
    return Status::failure(ENOTSUP, "the machine has more than " + std::to_string(kDisksMax) +
                                        " files of disks, backing files and CDs among them");
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace pawl::wsp::vm
