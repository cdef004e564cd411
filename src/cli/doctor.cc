// pawl doctor [DIR]: what Pawl will do here, and what is unsafe about it.
#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "cli/exit_codes.h"
#include "cli/file_system.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "track/tracker.h"

namespace pawl::cli {

namespace {

struct Arguments {
  std::string directory = ".";
  bool json = false;
};

enum class Level { fine, note, unsafe };

struct Finding {
  std::string name;   // what was looked at
  std::string value;  // what it is
  Level level = Level::fine;
  std::string why = {};  // for what is not fine: why, and what to do
};

using Findings = std::vector<Finding>;

const char* level_name(Level level) {
  switch (level) {
    case Level::fine:
      return "fine";
    case Level::note:
      return "note";
    case Level::unsafe:
      return "unsafe";
  }
  return "unknown";
}

std::string number_in(const char* path) {
  std::ifstream file(path);
  std::string number;
  file >> number;
  return number.empty() ? "unknown" : number;
}

std::uint64_t kibibytes_in_meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream fields(line.substr(name.size() + 1));
    std::uint64_t value = 0;
    fields >> value;
    return value;
  }
  return 0;
}

void examine_kernel(Findings& findings) {
  struct utsname system{};
  const bool named = ::uname(&system) == 0;
  findings.push_back({"kernel", named ? fmt::format("{} {}", system.sysname, system.release)
                                      : std::string("unknown")});
  const TrackerSupport support = probe_trackers();
  findings.push_back({"scan", support.scan ? "available" : "not available",
                      support.scan ? Level::fine : Level::note, support.scan_reason});
  findings.push_back({"fault log", support.fault_log ? "available" : "not available",
                      support.fault_log ? Level::fine : Level::note,
                      support.fault_log
                          ? ""
                          : support.fault_log_reason +
                                "; without it a commit scans the whole mapping, which shows in "
                                "large ones"});
  findings.push_back({"fault", "available"});
  findings.push_back({"auto chooses", support.scan ? "scan" : "fault"});
}

void examine_memory(Findings& findings) {
  const std::uint64_t memory = kibibytes_in_meminfo("MemTotal") * 1024;
  const std::uint64_t swap = kibibytes_in_meminfo("SwapTotal") * 1024;
  findings.push_back({"memory", size_text(memory)});
  findings.push_back(
      {"swap", swap == 0 ? "none" : size_text(swap), swap == 0 ? Level::note : Level::fine,
       swap == 0 ? "uncommitted changes live in memory only: a transaction has to fit "
                   "into it"
                 : ""});
  const std::string maps = number_in("/proc/sys/vm/max_map_count");
  const bool few = maps != "unknown" && std::stoull(maps) < 65530;
  findings.push_back({"max_map_count", maps, few ? Level::note : Level::fine,
                      few ? "the fault tracker may split a mapping into many pieces; raise "
                            "vm.max_map_count to 65530 or more"
                          : ""});
}

struct KnownFileSystem {
  const char* type;
  Level level;
  const char* why;
};

// By the kernel's names, as in /proc/self/mountinfo.
constexpr const char* kVolatileMemory =
    "it lives in memory: commits survive the death of the process, not that of the machine";
constexpr const char* kNetwork =
    "a network file system: locks, order and durability are what its server makes of them; keep "
    "the "
    "file on a local disk";
constexpr std::array kKnownFileSystems = {
    KnownFileSystem{"ext4", Level::fine, ""},
    KnownFileSystem{"ext3", Level::fine, ""},
    KnownFileSystem{"xfs", Level::fine, ""},
    KnownFileSystem{"f2fs", Level::fine, ""},
    KnownFileSystem{"btrfs", Level::note,
                    "it copies on write: after a snapshot, or with compression, space that was "
                    "reserved may not be enough, so that a full disk can stop the copying of "
                    "committed bytes into the file (they stay in the journal)"},
    KnownFileSystem{"bcachefs", Level::note,
                    "it copies on write: reserved space may not be enough after a snapshot"},
    KnownFileSystem{
        "zfs", Level::note,
        "it copies on write: space cannot be reserved, so that a full disk can stop the "
        "copying of committed bytes into the file (they stay in the journal)"},
    KnownFileSystem{"tmpfs", Level::unsafe, kVolatileMemory},
    KnownFileSystem{"ramfs", Level::unsafe, kVolatileMemory},
    KnownFileSystem{
        "overlay", Level::unsafe,
        "an overlay: a file of a lower layer changes its identity when it is first "
        "written, and the upper layer is often thrown away with its container; keep the "
        "file on a volume"},
    KnownFileSystem{"nfs", Level::unsafe, kNetwork},
    KnownFileSystem{"nfs4", Level::unsafe, kNetwork},
    KnownFileSystem{"cifs", Level::unsafe, kNetwork},
    KnownFileSystem{"smb3", Level::unsafe, kNetwork},
    KnownFileSystem{"9p", Level::unsafe, kNetwork},
    KnownFileSystem{"ceph", Level::unsafe, kNetwork},
    KnownFileSystem{"virtiofs", Level::unsafe,
                    "the host decides what a flush means; keep the file on a disk of this machine"},
};

void examine_type(Findings& findings, const FileSystemFacts& facts) {
  Finding finding{"file system",
                  fmt::format("{} on {} at {}", facts.type.empty() ? "unknown" : facts.type,
                              facts.source, facts.mount_point),
                  Level::note, "not one that Pawl knows: its flush may or may not be one"};
  for (const KnownFileSystem& known : kKnownFileSystems) {
    if (facts.type != known.type) continue;
    finding.level = known.level;
    finding.why = known.why;
  }
  if (facts.type.starts_with("fuse")) {
    finding.level = Level::unsafe;
    finding.why = "a file system in user space: durability is what its program makes of it";
  }
  findings.push_back(finding);
}

bool has_option(const std::string& options, const std::string& option) {
  return ("," + options + ",").find("," + option + ",") != std::string::npos;
}

void examine_mount_options(Findings& findings, const FileSystemFacts& facts) {
  for (const char* option : {"nobarrier", "barrier=0"}) {
    if (has_option(facts.options, option)) {
      findings.push_back({"mount option", option, Level::unsafe,
                          "flushes do not reach the disk; mount without it"});
    }
  }
  if (has_option(facts.options, "volatile")) {
    findings.push_back({"mount option", "volatile", Level::unsafe,
                        "the overlay ignores every flush; mount without it"});
  }
  if (has_option(facts.options, "ro")) {
    findings.push_back({"mount option", "ro", Level::note,
                        "mounted for reading only: no file here can be mapped atomically"});
  }
}

void examine_abilities(Findings& findings, const FileSystemFacts& facts) {
  if (!facts.can_create) {
    findings.push_back({"journals", "cannot be created", Level::note,
                        "no file can be made in this directory (" + facts.create_reason +
                            "), and a journal stands beside its file"});
    return;
  }
  findings.push_back({"O_DIRECT", facts.has_direct_io ? "yes" : "no",
                      facts.has_direct_io ? Level::fine : Level::note,
                      facts.has_direct_io ? ""
                                          : "the journal is written through the page cache, "
                                            "which is slower"});
  findings.push_back({"marks", facts.has_attributes ? "yes" : "no",
                      facts.has_attributes ? Level::fine : Level::note,
                      facts.has_attributes ? ""
                                           : "no user attributes: after a crash nothing keeps "
                                             "another program from using the file without its "
                                             "journal"});
  findings.push_back({"reservation", facts.has_allocation ? "yes" : "no",
                      facts.has_allocation ? Level::fine : Level::note,
                      facts.has_allocation ? ""
                                           : "no fallocate: space is reserved by writing, which "
                                             "is slower"});
  findings.push_back({"free space", size_text(facts.free_bytes)});
}

void examine_disk(Findings& findings, const FileSystemFacts& facts) {
  if (facts.disk.empty()) {
    findings.push_back({"disk", "no single block device behind it"});
    return;
  }
  findings.push_back({"disk", facts.disk});
  if (facts.write_cache == "write back") {
    findings.push_back(
        {"write cache", facts.has_fua ? "write back, with FUA" : "write back", Level::fine, ""});
  } else if (facts.write_cache == "write through") {
    // The kernel then sends no flush: right for a disk without a cache, and wrong for one that
    // does not admit to it.
    findings.push_back(
        {"write cache", "write through", Level::note,
         "the kernel sends this disk no flush, because it says that it keeps nothing "
         "back: true of a disk without a cache or with a battery. If it is a virtual "
         "disk, ask whether its host says so too"});
  } else {
    findings.push_back({"write cache", "unknown", Level::note, "the kernel does not say"});
  }
}

Json as_json(const Findings& findings, const std::string& directory) {
  Json list = Json::array();
  bool safe = true;
  for (const Finding& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"value", finding.value},
                    {"level", level_name(finding.level)},
                    {"why", finding.why}});
    safe = safe && finding.level != Level::unsafe;
  }
  return Json{{"directory", directory}, {"safe", safe}, {"findings", list}};
}

void print_text(const Findings& findings, const std::string& directory) {
  fmt::print("{}\n\n", directory);
  for (const Finding& finding : findings) {
    fmt::print("{:<8} {:<14} {}\n", finding.level == Level::fine ? "" : level_name(finding.level),
               finding.name, finding.value);
    if (!finding.why.empty()) fmt::print("{:<24}{}\n", "", finding.why);
  }
}

int doctor(const Arguments& arguments) {
  Result<FileSystemFacts> facts = look_at_directory(arguments.directory);
  if (!facts.ok()) {
    complain("doctor", facts.status().text());
    return kExitFailure;
  }
  Findings findings;
  examine_kernel(findings);
  examine_memory(findings);
  examine_type(findings, facts.value());
  examine_mount_options(findings, facts.value());
  examine_abilities(findings, facts.value());
  examine_disk(findings, facts.value());

  bool safe = true;
  for (const Finding& finding : findings) safe = safe && finding.level != Level::unsafe;
  if (arguments.json) {
    print_json(as_json(findings, facts.value().directory));
  } else {
    print_text(findings, facts.value().directory);
    fmt::print("\n{}\n", safe ? "Nothing here is unsafe." : "Unsafe: see above.");
  }
  return safe ? kExitOk : kExitUnsafe;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand(
      "doctor", "Say what the kernel, the file system and the disk allow, and what is unsafe here");
  verb->add_option("DIR", arguments->directory, "The directory that holds, or will hold, the files")
      ->capture_default_str();
  verb->add_flag("--json", arguments->json, "Answer in JSON");
  verb->footer(
      "Example:\n  pawl doctor /srv/data\n"
      "Exit codes: 0 nothing here is unsafe, 9 something is, 1 cannot look.");
  verb->callback([arguments, &exit_code] { exit_code = doctor(*arguments); });
}

}  // namespace pawl::cli
