#include "cli/directory_findings.h"

#include <fmt/core.h>

#include <array>
#include <limits>

#include "cli/text.h"
#include "medium/medium.h"
#include "medium/refused_file_systems.h"

namespace pawl::cli {

namespace {

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
    KnownFileSystem{"ceph", Level::unsafe, kNetwork},
    KnownFileSystem{"virtiofs", Level::unsafe,
                    "the host decides what a flush means; keep the file on a disk of this machine"},
};

void examine_type(Findings& findings, const FileSystemFacts& facts) {
  if (!facts.has_proc) {
    findings.push_back({"/proc", "missing", Level::unsafe,
                        "what is mounted here cannot be read, nor can Pawl find the name of a "
                        "file that it is to map; mount /proc"});
    return;
  }
  Finding finding{"file system",
                  facts.mount_point.empty()
                      ? facts.type + ", of a mount that cannot be seen here (a chroot)"
                      : fmt::format("{} on {} at {}", facts.type, facts.source, facts.mount_point),
                  Level::note, "not one that Pawl knows: its flush may or may not be one"};
  for (const KnownFileSystem& known : kKnownFileSystems) {
    if (facts.type != known.type) continue;
    finding.level = known.level;
    finding.why = known.why;
  }
  for (const RefusedFileSystem& refused : kRefusedFileSystems) {
    if (facts.type != refused.type) continue;
    finding.level = Level::unsafe;
    finding.why = fmt::format(
        "nothing here can be mapped atomically: {}; keep the file on a local disk", refused.reason);
  }
  if (facts.type.starts_with("fuse")) {
    finding.level = Level::unsafe;
    finding.why = "a file system in user space: durability is what its program makes of it";
  }
  findings.push_back(finding);
}

void examine_size_limit(Findings& findings, const FileSystemFacts& facts) {
  if (facts.file_bytes_max == std::numeric_limits<std::uint64_t>::max()) return;
  const bool is_too_small = facts.file_bytes_max < facts.first_journal_bytes;
  findings.push_back(
      {"size limit", size_text(facts.file_bytes_max), is_too_small ? Level::unsafe : Level::note,
       is_too_small
           ? "no file may become larger (RLIMIT_FSIZE), and a journal begins with " +
                 size_text(facts.first_journal_bytes) +
                 ": nothing can be mapped atomically; raise the limit (ulimit -f)"
           : "no file may become larger (RLIMIT_FSIZE), nor a journal: a commit that needs more "
             "fails; raise the limit (ulimit -f) where that is too little"});
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
    findings.push_back({"mount option", "ro", Level::unsafe,
                        "mounted for reading only: no file here can be mapped atomically"});
  }
}

void examine_abilities(Findings& findings, const FileSystemFacts& facts) {
  if (!facts.can_remove) {
    findings.push_back({"journals", "cannot be removed", Level::unsafe,
                        "this directory is append-only: to unmap a file fails (EPERM), and leaves "
                        "its journal behind; take the attribute away (chattr -a), or keep the file "
                        "elsewhere"});
  }
  if (!facts.can_create) {
    findings.push_back({"journals", "cannot be created", Level::unsafe,
                        "no file can be made in this directory (" + facts.create_reason +
                            "), and a journal stands beside its file: nothing here can be mapped "
                            "atomically"});
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
                                             "another program, or the same file under another "
                                             "name, from being used without the journal, which "
                                             "later undoes what was changed meanwhile"});
  findings.push_back({kReservation, facts.has_allocation ? "yes" : "no",
                      facts.has_allocation ? Level::fine : Level::unsafe,
                      facts.has_allocation ? ""
                                           : "no fallocate(2), by which Pawl reserves space: "
                                             "nothing here can be mapped atomically; keep the "
                                             "file on ext4, XFS, f2fs or btrfs"});
  const bool has_room = facts.free_bytes >= facts.journal_bytes;
  const bool is_bounded = facts.free_bytes != MediumFile::kNotBounded;
  findings.push_back({"free space", is_bounded ? size_text(facts.free_bytes) : "without a bound",
                      has_room ? Level::fine : Level::unsafe,
                      has_room ? ""
                               : "a journal takes " + size_text(facts.journal_bytes) +
                                     ", and there is no room for it: nothing here can be mapped "
                                     "atomically; free some, or choose a smaller journal "
                                     "(PAWL_JOURNAL_SIZE)"});
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

}  // namespace

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

Findings examine_directory(const FileSystemFacts& facts) {
  Findings findings;
  examine_type(findings, facts);
  examine_mount_options(findings, facts);
  examine_abilities(findings, facts);
  examine_size_limit(findings, facts);
  examine_disk(findings, facts);
  return findings;
}

}  // namespace pawl::cli
