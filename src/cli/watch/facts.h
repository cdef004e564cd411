// What was seen while a program ran: no judgement, and nothing of how it was seen.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/directory_findings.h"
#include "cli/watch/tracer.h"

namespace pawl::cli::watch {

// Bounds on what is remembered.  When one is reached, ProgramFacts::limits says so.
inline constexpr std::size_t kFilesMax = 256;
inline constexpr std::size_t kProcessesMax = 4096;    // at a time
inline constexpr std::size_t kWindowsMax = 1024;      // mappings of a process at a time
inline constexpr std::size_t kOpenedMax = 4096;       // descriptors that a process opened
inline constexpr std::size_t kProgramsMax = 32;       // that map one file
inline constexpr std::size_t kNamesMax = 16;          // that one file is mapped under, or gets
inline constexpr std::size_t kRandomNamesMax = 4096;  // of files, and of directories
inline constexpr std::size_t kUnmappedMax = 1024;     // files that are changed and not mapped
inline constexpr std::size_t kPairsMax = 64;          // of files that are synchronised together
inline constexpr std::size_t kExecutablesMax = 64;    // that cannot take the face along
inline constexpr std::size_t kScansMax = 64;          // of all processes of the machine
inline constexpr std::size_t kScannedProcessesMax = 8192;    // in one such scan
inline constexpr std::size_t kScannedDescriptorsMax = 8192;  // of one process
inline constexpr std::size_t kBatchMax = 256;  // requests or messages of one system call

struct FileKey {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileKey&) const = default;
};

// What was seen that Pawl may care about, by the file that it was seen of.
enum class Sight {
  second_mapping,    // in the process that has it mapped already
  late_unmapping,    // the first mapping went after the second came, soon and by another thread
  second_process,    // mapped in two processes at once
  other_process,     // changed by one while another has it mapped
  reader,            // opened by one while another has it mapped
  outsider,          // a process that the program did not start has it
  forked_child,      // a child changes or synchronises what its parent mapped
  child_stores,      // a child stores into what its parent mapped
  inherited,         // a child lived on with the mapping and used it, or unmapped it
  daemon,            // a child that has the mapping leaves its session
  stream_open,       // by fopen(3) and its kin, while it is mapped, or before
  stream_write,      // by stdio
  raw_call,          // a system call that does not come from libc
  inside_libc,       // libc's own
  fixed_over_part,   // MAP_FIXED over a part of a mapping
  remap_part,        // mremap(2) of a part
  move_blocks,       // fallocate(2) that collapses, inserts, unshares
  share_blocks,      // FICLONE and its kin
  linux_aio,         // io_submit(2)
  remap_file_pages,  //
  protection_key,    //
  unshares,          // unshare(2) or setns(2) as a process of one thread alone may
  passed_on,         // SCM_RIGHTS
  one_of_two_names,  // unlink(2) of one of several names
  large_private,     // MAP_PRIVATE of more than the face copies
  no_preload,        // mapped by a program into which no library can be preloaded
  sanitizer,         // mapped by one whose runtime refuses preloaded libraries
  privileges,        // mapped by one that gains privileges
  environment,       // mapped by one that was started without our variables
  own_preload,       // mapped by one that was started with another LD_PRELOAD
  other_root,        // mapped by one whose root directory lacks what the face needs
  other_libraries,   // mapped by one whose root directory has other libraries
  descriptors,       // more than the process may have, with those of Pawl
  journal_space,     // less is free than the journals take
  size_limit,        // RLIMIT_FSIZE is less than a journal begins with
  size_limit_may,    // or less than a commit of the whole file needs
  sandbox,           // a seccomp filter of the program's breaks commits
  sandbox_may,       // one may
  log_beside,        // a log that belongs to the file is written, and is not mapped
  file_beside,       // so is another file that may belong to it
  renamed,           // by the program, before or after it was mapped
  unmapped_unsynchronised,
};

struct Seen {
  std::uint64_t count = 0;
  std::string example;  // of the first: who and what
};

// What Pawl has open for a mapped file (docs/preload.md).
inline constexpr std::size_t kDescriptorsPerFile = 7;
// Pawl waits twice as long for a window to go; the program is slower here, but the machine may be
// busier then.
inline constexpr std::chrono::milliseconds kLateUnmappingMax{50};

// As `synchronisations` has it.
inline constexpr const char* kAsynchronous = "msync(MS_ASYNC)";
inline constexpr const char* kSync = "sync";
inline constexpr const char* kSyncfs = "syncfs";
inline constexpr const char* kFsync = "fsync";
inline constexpr const char* kFdatasync = "fdatasync";
inline constexpr const char* kDurableWrite = "durable write";

// What one process did with a file, from its first mapping until it let go of it, by when it last
// synchronised it.
struct Holding {
  std::uint64_t synchronisations = 0;
  // From its mapping to the last of them, without what the others took.
  std::chrono::milliseconds before{0};
  std::chrono::milliseconds after{0};  // from then to its letting go
  std::uint64_t writes_after = 0;
  bool has_stores_after = false;  // where that can be seen
  // The longest time, without a synchronisation, for which it was seen to have changes.
  std::chrono::milliseconds longest_behind{0};
  std::chrono::milliseconds lasted{0};
  // In a mapping that the process made after it gave up a lock on the whole file, which commits it.
  bool follows_unlocking = false;
};
inline constexpr std::size_t kHoldingsMax = 64;  // of a file: those with the longest `after`
// For stores that were not synchronised: when a mapping goes,
inline constexpr std::size_t kLooksForStoresMax = 256;
// and while the program changes other files: these often, and after that for a part of the time.
inline constexpr std::size_t kLooksMeanwhile = 256;
inline constexpr int kLooksMeanwhilePart = 20;
// While nothing happens; each wait is twice as long as the one before.
inline constexpr std::chrono::milliseconds kFirstLookAfter{250};
inline constexpr std::size_t kLooksAtChildrenMax = 1024;

// What one process changes by calls, from its first mapping to its letting go.
struct CallsOfHolder {
  std::uint64_t synchronised = 0;
  std::uint64_t behind = 0;  // the last synchronisation
};

inline std::uint64_t sum_of(const std::map<std::string, std::uint64_t>& counts) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

struct FileFacts {
  std::string path;  // when it was first mapped
  // Under which it was mapped, or that rename(2) gave it, the last one at the end.
  std::vector<std::string> names;
  std::uint64_t mappings = 0;
  std::uint64_t longest_mapping_bytes = 0;
  bool is_mapped_writable = false;
  bool asks_for_pawl = false;  // by MAP_ATOMIC
  bool has_sections = false;   // it is one of pawl_fase_open()
  std::uint64_t first_size_bytes = 0;
  std::uint64_t last_size_bytes = 0;
  // By the names of the calls.
  std::map<std::string, std::uint64_t> changes;
  std::map<std::string, std::uint64_t> synchronisations;
  // Of calls that failed, by what failed and why.
  std::map<std::string, std::uint64_t> failed_synchronisations;
  // msync(MS_ASYNC) without another synchronisation between.
  std::uint64_t asynchronous_in_a_row = 0;  // the last ones
  std::uint64_t asynchronous_in_a_row_max = 0;
  CallsOfHolder latest;           // of the last process that mapped it
  CallsOfHolder furthest;         // of the one that changed most behind its last synchronisation
  std::uint64_t range_hints = 0;  // sync_file_range(2)
  // The most pages that one process changed, and left out of the ranges that it synchronised.
  std::uint64_t pages_left_out = 0;
  std::vector<Holding> holdings;
  std::set<FileKey> changed_along;  // others, of which ProgramFacts::unmapped has the names
  // How often such a one was changed while this one had changes that were not synchronised; by its
  // path, for a file that is replaced each time is another one each time.
  std::map<std::string, std::uint64_t> changed_ahead;
  std::uint64_t unlockings = 0;  // of the whole file, while it was not mapped
  std::set<std::string> programs;
  Findings directory;      // what is not fine about it
  bool can_create = true;  // files beside it
  std::map<Sight, Seen> seen;
};

struct ProgramFacts {
  std::vector<FileKey> order;  // of the first mapping
  std::map<FileKey, FileFacts> files;
  // What a process that has one of them wrote, made or renamed besides, and what it is called.
  std::map<FileKey, std::string> unmapped;
  // How often the second was synchronised right after the first, by the same process.
  std::map<std::pair<FileKey, FileKey>, std::uint64_t> in_one_go;
  // How often at most the second was synchronised between two synchronisations of the first, while
  // that had changes.
  std::map<std::pair<FileKey, FileKey>, std::uint64_t> synchronised_ahead;
  Seen io_uring;
  Seen pinned_buffers;
  bool has_libpawl = false;                            // a program has it loaded, and may call it
  std::map<std::string, std::string> not_preloadable;  // path of the executable: why
  std::uint64_t processes = 0;
  std::set<std::string> process_numbers;                  // that file names may hold
  std::set<std::string> random_names;                     // that are made up, as mkstemp(3) does
  std::map<std::string, std::size_t> random_directories;  // and of how many letters at the end
  std::set<std::string> dates;                            // while it ran
  std::vector<std::string> unmatched_globs;
  std::set<std::string> limits;
  Ending ending;
};

}  // namespace pawl::cli::watch
