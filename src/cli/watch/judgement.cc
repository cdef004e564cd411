#include "cli/watch/judgement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ranges>
#include <set>
#include <string>

#include "cli/text.h"
#include "cli/watch/globs.h"
#include "cli/watch/left_out.h"
#include "cli/watch/neighbours.h"
#include "journal/format.h"

namespace pawl::cli::watch {

namespace {

struct Meaning {
  Sight sight;
  const char* code;
  Weight weight;
  const char* why;
  const char* advice;
};

// Changes behind the last synchronisation from which on they are more than a program's last ones.
constexpr std::uint64_t kChangesBehindMin = 8;
// Changes of other files while this one had some that were not synchronised, from which on that is
// how the program works, and not how it once begins or ends.
constexpr std::uint64_t kChangesAheadMin = 8;
// Synchronisations of another file between two of this one, from which on the two are not
// synchronised in one go.
constexpr std::uint64_t kSynchronisationsAheadMin = 8;
// How long a process has the file after its last synchronisation, against the time before it, from
// which on that was an early one.  Below the first bound it is a matter of chance.
constexpr int kEarlyAfterTimes = 9;
constexpr std::chrono::milliseconds kEarlyAfterMin{100};
// How long it had changes without a synchronisation, against the rest of the time.
constexpr int kBehindTimes = 3;
// From which on nothing else need speak for it.
constexpr std::chrono::milliseconds kIdleAfterMin{2000};

// Calls of msync(MS_ASYNC) in a row from which on they stand for themselves: a program with fewer
// calls a durable one at the end of each change (LMDB with MDB_MAPASYNC and mdb_env_sync()).
constexpr std::uint64_t kAsynchronousInARowMin = 8;

// What a crash leaves where no commit was made.
constexpr const char* kAsFirstMapped =
    "as it was when it was first mapped, with what was written or allocated before: one that the "
    "program makes may be all zeros";

constexpr const char* kSharedState = "shared_state";
constexpr const char* kNeverSynchronised = "never_synchronised";
constexpr const char* kSynchronisedEarly = "synchronised_early";
constexpr const char* kSynchronisedAtEnds = "synchronised_at_ends";
constexpr std::size_t kChangedAlongNamesMax = 8;  // in one remark

constexpr const char* kStreamWhy =
    "a file is a stdio stream or a Pawl mapping, not both: stdio writes from within libc";
constexpr const char* kStreamAdvice =
    "use open(), read() and write() for this file, or close the stream before it is mapped";

constexpr std::array kMeanings = {
    Meaning{Sight::no_preload, "static_program", Weight::cannot,
            "the program cannot take the preload library along, so nothing that it maps is atomic",
            "link it dynamically, or have it call pawl_mmap() itself"},
    Meaning{Sight::sanitizer, "sanitizer", Weight::cannot,
            "the runtime of AddressSanitizer wants to be the first of all libraries: behind a "
            "preloaded one it ends the program at its start",
            "take a build without -fsanitize=address"},
    Meaning{Sight::privileges, "set_user_id", Weight::cannot,
            "the program gains privileges when it is started, and the loader then ignores "
            "LD_PRELOAD",
            "run it as the user that it becomes"},
    Meaning{Sight::environment, "own_environment", Weight::cannot,
            "LD_PRELOAD and PAWL_ATOMIC do not reach a process that is started with an "
            "environment of its own (env -i, sudo, a server that cleans it)",
            "put 'pawl run' behind whatever cleans the environment, or have that keep LD_PRELOAD "
            "and the variables that begin with PAWL_"},
    Meaning{
        Sight::own_preload, "own_preload", Weight::cannot,
        "a script or a program on the way replaces or removes LD_PRELOAD, by which the preload "
        "library is loaded",
        "have it add its own library to LD_PRELOAD (LD_PRELOAD=OTHER:$LD_PRELOAD), or put 'pawl "
        "run' behind it"},
    Meaning{Sight::other_root, "other_root", Weight::cannot,
            "the program runs in a root directory of its own (chroot, bwrap), in which the preload "
            "library cannot be loaded or cannot find the names of files",
            "install Pawl under the same path there and mount /proc, or run the program outside"},
    Meaning{Sight::other_libraries, "other_libraries", Weight::but,
            "the program runs in a root directory of its own, whose C or C++ library is another "
            "one than Pawl was tried with here: an older one does not load the preload library, "
            "and the program then runs without it",
            "run 'pawl doctor' and 'pawl run' of a Pawl that is installed there"},
    Meaning{
        Sight::raw_call, "raw_call", Weight::cannot,
        "a system call that is not made by a function of the program's libc passes the preload "
        "face by; a library that dlmopen() opens in another namespace has a libc of its own",
        "use libc's function of that name, or call pawl_mmap() and its kin; open libraries with "
        "dlopen()"},
    Meaning{Sight::stream_open, "stream", Weight::cannot, kStreamWhy, kStreamAdvice},
    Meaning{Sight::stream_write, "stream", Weight::cannot, kStreamWhy, kStreamAdvice},
    Meaning{Sight::inside_libc, "inside_libc", Weight::cannot,
            "libc makes this call by itself, in a thread of its own (aio_write() and its kin) or "
            "in a function that the face does not stand before",
            "use pread(), pwrite(), msync() and fsync() for this file"},
    Meaning{Sight::linux_aio, "linux_aio", Weight::cannot,
            "requests of libaio go to the kernel past the preload face",
            "use pread() and pwrite() for this file"},
    Meaning{Sight::second_mapping, "second_mapping", Weight::cannot,
            "a file has one atomic mapping at a time, until all of it is unmapped; the second one "
            "fails with EBUSY",
            "use one mapping of the whole file, or mremap() to enlarge it"},
    Meaning{Sight::late_unmapping, "late_unmapping", Weight::but,
            "the file is mapped a second time while another thread is about to unmap the first "
            "mapping, as programs do that leave it to garbage collection (H2 under Java). The "
            "second mmap() waits 100 ms for that, and then fails with EBUSY",
            "unmap before mapping again; in Java, let the database use its plain file channels"},
    Meaning{Sight::second_process, "second_process", Weight::cannot,
            "a file has one writer: the second process that maps it gets EBUSY",
            "leave the mapping to one process, and let the others ask it; or let go of the file "
            "(munmap and close) before another maps it"},
    Meaning{Sight::other_process, "other_process", Weight::cannot,
            "what another process writes passes by the one that has the file mapped, and renaming "
            "or removing it fails with EBUSY",
            "leave all changes to the process that maps the file"},
    Meaning{Sight::outsider, "outsider", Weight::cannot,
            "a process that the program did not start has the file; what it writes passes by Pawl, "
            "or one of the two is refused with EBUSY",
            "stop that process, or let one of the two have the file alone"},
    Meaning{Sight::forked_child, "forked_child", Weight::cannot,
            "in a forked child the parent's file can be read only; this fails with EPERM",
            "map the file in the process that is to write it, after fork()"},
    Meaning{Sight::daemon, "daemon", Weight::cannot,
            "the process that mapped the file is not the one that goes on with it: daemon() forks",
            "map after the program has become a daemon, or let it stay in the foreground"},
    Meaning{Sight::fixed_over_part, "fixed_over_part", Weight::cannot,
            "MAP_FIXED over a part of an atomic mapping fails with EBUSY",
            "unmap the whole mapping first"},
    Meaning{Sight::remap_part, "remap_part", Weight::cannot,
            "mremap() moves and resizes an atomic mapping only as a whole; this fails with EINVAL",
            "remap the whole of it"},
    Meaning{Sight::move_blocks, "move_blocks", Weight::cannot,
            "fallocate() that collapses, inserts or unshares a range moves blocks beneath the "
            "journal; it fails with EOPNOTSUPP",
            "copy the bytes instead"},
    Meaning{Sight::share_blocks, "share_blocks", Weight::cannot,
            "FICLONE and its kin share blocks beneath the journal; they fail with EOPNOTSUPP",
            "copy the bytes instead"},
    Meaning{Sight::remap_file_pages, "remap_file_pages", Weight::cannot,
            "an atomic mapping shows its file in one order; remap_file_pages() fails with ENOTSUP",
            "use a mapping for each part, of files of their own"},
    Meaning{Sight::protection_key, "protection_key", Weight::cannot,
            "an atomic mapping has no protection key; pkey_mprotect() fails with ENOTSUP",
            "use mprotect()"},
    Meaning{Sight::one_of_two_names, "several_names", Weight::cannot,
            "removing one of several names of a mapped file fails with EBUSY, for the journal "
            "stands beside one of them",
            "unmap the file before one of its names is removed"},
    Meaning{Sight::large_private, "large_private", Weight::cannot,
            "a private mapping of a mapped file is a copy, and of more than 1 GiB none is made "
            "(ENOMEM)",
            "map it in pieces"},
    Meaning{Sight::descriptors, "descriptors", Weight::cannot,
            "Pawl has 7 descriptors open for each mapped file, and with them the process reaches "
            "its limit: mmap() fails with EMFILE",
            "raise the limit (ulimit -n), or map fewer files at a time"},
    Meaning{Sight::journal_space, "journal_space", Weight::cannot,
            "each mapped file has a journal, which is written when the file is first mapped: "
            "mmap() fails with ENOSPC",
            "free some space, or map fewer files at a time"},
    Meaning{Sight::size_limit, "size_limit", Weight::cannot,
            "each mapped file has a journal, and the process may not write a file as long as that "
            "(RLIMIT_FSIZE): mmap() fails with EFBIG",
            "raise the limit (ulimit -f)"},
    Meaning{Sight::size_limit_may, "size_limit", Weight::but,
            "Pawl writes what the program stores to the file and to its journal, and neither may "
            "be written past the process's limit (RLIMIT_FSIZE): msync() fails with EFBIG where "
            "so much was changed since the last one, or was changed past it",
            "raise the limit (ulimit -f) to twice the size of the file, or see that it is enough "
            "for what is changed between two synchronisations"},
    Meaning{Sight::sandbox, "sandbox", Weight::cannot,
            "the program installs a seccomp filter that forbids system calls which commits make: "
            "they fail, or the program is killed",
            "let the filter pass the calls that docs/preload.md lists"},
    Meaning{Sight::sandbox_may, "sandbox", Weight::but,
            "the program installs a seccomp filter that may forbid system calls which commits "
            "make, depending on their arguments or on what the file needs",
            "let the filter pass the calls that docs/preload.md lists, with all arguments; try it "
            "under 'pawl run'"},
    Meaning{Sight::passed_on, "passed_on", Weight::cannot,
            "a process that received the descriptor uses the file past the one that has it mapped",
            "pass the bytes, not the descriptor; or pass it before the file is mapped, and write "
            "in one process only"},
    Meaning{Sight::unshares, "unshares", Weight::but,
            "unshare() with CLONE_NEWUSER, CLONE_VM or CLONE_SIGHAND, and setns() into a user "
            "namespace, are for processes of one thread; Pawl may have started threads of its own "
            "for a mapped file, and then they fail with EINVAL",
            "call it before the first file is mapped, or in a forked child"},
    Meaning{Sight::reader, "reader", Weight::but,
            "another process sees the file as Pawl last applied it, which may be older than the "
            "last commit",
            "let it read when the file is closed, or ask the process that has it; --apply eager "
            "keeps the file as new as the last commit"},
    Meaning{Sight::child_stores, "child_stores", Weight::cannot,
            "a forked child stores into the mapping that it inherited: under Pawl these stores are "
            "its own, no other process sees them, and all of them are lost",
            "store in one process only, or have the processes map the file themselves, one after "
            "the other; else leave the file out of --atomic"},
    Meaning{Sight::inherited, "inherited", Weight::but,
            "if a child stores there, all of it is lost: a forked child lived on with the mapping "
            "and used it, and whether it stored is not certain. Under Pawl it may read it, and its "
            "stores are its own",
            "find out whether children store (workers of a server do, as a rule). Where they do, "
            "leave the file out of --atomic; where they only read, name it"},
    Meaning{Sight::renamed, "renamed", Weight::but,
            "a glob is matched against the name that the file has when the program maps it: what "
            "it does under a name that no glob matches is not atomic",
            "name all names that it maps, as the line below does for those of this run; where a "
            "part of a name is another one each time, write * for it (the line has it for process "
            "ids and for names that mkstemp() made)"},
    Meaning{Sight::unmapped_unsynchronised, "unmapped_unsynchronised", Weight::note,
            "a mapping went without msync() since it was made: what was stored there becomes "
            "durable when the file is next synchronised or closed",
            "call msync() before munmap() where that must be sooner"},
};

Remark remark_of(const Meaning& meaning, const Seen& seen) {
  return {meaning.code, meaning.weight, seen.count, seen.example, meaning.why, meaning.advice};
}

// One remark of each code, with all that was seen of it.
void add(std::vector<Remark>& remarks, Remark remark) {
  for (Remark& present : remarks) {
    if (present.code != remark.code) continue;
    present.count += remark.count;
    return;
  }
  remarks.push_back(std::move(remark));
}

bool saw(const FileFacts& file, Sight sight) { return file.seen.contains(sight); }

// A child that changes the file is told of as such; that it has the mapping then goes without
// saying.
// Where no library can be preloaded, all calls are raw ones.
bool is_said_by_another(const FileFacts& file, Sight sight) {
  const bool cannot_preload = saw(file, Sight::no_preload) || saw(file, Sight::privileges);
  if (sight == Sight::raw_call || sight == Sight::inside_libc) return cannot_preload;
  return sight == Sight::inherited && (saw(file, Sight::forked_child) || saw(file, Sight::daemon) ||
                                       saw(file, Sight::child_stores));
}

bool maps_a_file(const ProgramFacts& facts, const std::string& executable) {
  return std::ranges::any_of(
      facts.files, [&](const auto& entry) { return entry.second.programs.contains(executable); });
}

// Synchronises by msync(MS_ASYNC) alone, or mostly so.
bool asks_for_later(const FileFacts& file) {
  const auto found = file.synchronisations.find(kAsynchronous);
  if (found == file.synchronisations.end()) return false;
  const std::uint64_t others = sum_of(file.synchronisations) - found->second;
  return others == 0 ||
         (file.asynchronous_in_a_row_max >= kAsynchronousInARowMin && found->second > others);
}

void judge_later(const FileFacts& file, std::vector<Remark>& remarks) {
  const std::uint64_t count = file.synchronisations.at(kAsynchronous);
  const std::uint64_t others = sum_of(file.synchronisations) - count;
  const std::string seen = count_text(count, "time");
  if (others == 0) {
    return add(remarks,
               {"only_asynchronous", Weight::but, 1, seen,
                "msync(MS_ASYNC) alone: each is a commit, and durable a little later. A crash, and "
                "even the end of the process by a signal, which loses nothing in the kernel, loses "
                "the last of them, though never a part of one",
                "take --ms-async sync, with which such a call is durable when it returns, and "
                "waits for the disk; without it, where the last commits may be missing"});
  }
  add(remarks,
      {"mostly_asynchronous", Weight::but, 1,
       fmt::format("{}, up to {} in a row, and {}", seen, file.asynchronous_in_a_row_max,
                   count_text(others, "other synchronisation")),
       "mostly msync(MS_ASYNC): each is a commit, and durable a little later. A crash, and even "
       "the end of the process by a signal, which loses nothing in the kernel, loses those since "
       "the last other synchronisation, though never a part of one",
       "take --ms-async sync, with which such a call is durable when it returns, and waits for the "
       "disk; without it, where the last commits may be missing, or where a durable call always "
       "follows before anything is taken for saved"});
}

// A commit of a range has the pages of that range.
void judge_left_out(const FileFacts& file, std::vector<Remark>& remarks) {
  if (file.pages_left_out == 0) return;
  add(remarks,
      {"synchronised_in_part", Weight::but, 1,
       fmt::format("{}, while the file was synchronised {} times or more",
                   count_text(file.pages_left_out, "page"),
                   kSynchronisationsToALook * kLooksForLeftOut),
       "the program changes pages that are in none of the ranges that it synchronises by msync(): "
       "a commit has the pages of its range, so that a kill takes these back and not the others, "
       "as a power cut does without Pawl (Node.js's lmdb with useWritemap and overlappingSync "
       "leaves out the last page, and then is corrupt)",
       "take --group FILE, with which each call commits all that was changed; or have the program "
       "synchronise all that it changes (lmdb: overlappingSync: false); nothing, where old bytes "
       "in those pages do no harm"});
}

// By sync() and syncfs() alone, which say nothing of the file.
bool is_synchronised_with_others_only(const FileFacts& file) {
  return std::ranges::all_of(file.synchronisations, [](const auto& entry) {
    return entry.first == kSync || entry.first == kSyncfs;
  });
}

// One that fails commits nothing; where most do, the program's idea of what is saved is wrong.
void judge_failed_synchronisation(const FileFacts& file, std::vector<Remark>& remarks) {
  const std::uint64_t failed = sum_of(file.failed_synchronisations);
  if (failed == 0) return;
  std::string seen;
  for (const auto& [failure, count] : file.failed_synchronisations) {
    if (count == failed) {  // the remark has its count
      seen = failure;
      break;
    }
    const std::size_t name = failure.find(':');
    seen += fmt::format("{}{} {}{}", seen.empty() ? "" : "; ", failure.substr(0, name),
                        count_text(count, "time"), failure.substr(name));
  }
  add(remarks,
      {"synchronisation_fails",
       failed > sum_of(file.synchronisations) ? Weight::cannot : Weight::but, failed, seen,
       "a synchronisation that fails commits nothing, with Pawl as without: a crash takes back "
       "what the program believes to be saved",
       "have the program look at what these calls answer. msync() wants an address that is a "
       "multiple of the page size, and MS_SYNC or MS_ASYNC, not both"});
}

void judge_synchronisation(const FileFacts& file, std::vector<Remark>& remarks) {
  judge_failed_synchronisation(file, remarks);
  judge_left_out(file, remarks);
  if (asks_for_later(file)) judge_later(file, remarks);
  if (!file.synchronisations.empty() && is_synchronised_with_others_only(file)) {
    add(remarks,
        {"synchronised_by_sync", Weight::but, 1, "",
         "only sync() or syncfs() makes the file durable: each is a commit of every file that the "
         "process has mapped, wherever other threads are in their changes. A sync of another "
         "process, or of the command of that name, is no commit",
         "call msync(MS_SYNC) wherever the data is consistent"});
  }
  if (std::ranges::any_of(file.holdings, [](const Holding& one) {
        return one.follows_unlocking && one.synchronisations == 0;
      })) {
    return add(
        remarks,
        {kNeverSynchronised, Weight::but, 1,
         fmt::format("its lock given up {}", count_text(file.unlockings, "time")),
         "to give up a lock on the whole file, while it is not mapped, is a commit. After that the "
         "file was mapped again and never synchronised: all that followed is one commit, at the "
         "close, and a crash at any time before takes the file back to what it was when the lock "
         "was given up, which may be half of its making",
         "call msync(MS_SYNC) when the file is made, and wherever the data is consistent"});
  }
  if (!file.synchronisations.empty() || file.mappings == 0) return;
  // Another finding says so of who synchronises in vain.
  if (!file.failed_synchronisations.empty()) return;
  if (saw(file, Sight::raw_call) || saw(file, Sight::forked_child)) return;
  const bool hints = file.range_hints > 0;
  add(remarks,
      {kNeverSynchronised, Weight::but, 1,
       hints ? fmt::format("sync_file_range {}", count_text(file.range_hints, "time"))
             : std::string(),
       fmt::format("{}: all that the program does from mapping the file first to closing it is one "
                   "commit, and a crash before the close leaves the file {}",
                   hints ? "sync_file_range() promises no durability, and Pawl takes it for nothing"
                         : "neither msync() nor fsync() was called",
                   kAsFirstMapped),
       "nothing, where that is what must be whole, as in a command that makes its change and ends; "
       "make a new file under another name and rename it when it is whole; "
       "in a program that keeps the file open, call msync(MS_SYNC) wherever the data is "
       "consistent; leave a file that need not survive a crash out of --atomic"});
}

std::string duration_text(std::chrono::milliseconds duration) {
  if (duration < std::chrono::seconds(1)) return fmt::format("{} ms", duration.count());
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

bool is_changed_mostly_behind(const FileFacts& file) {
  return file.furthest.behind > file.furthest.synchronised;
}

bool is_neighbour(const FileFacts& file, const std::string& path) {
  return neighbour_of(file.names.back(), path) != Neighbour::none;
}

// Of files that are called like it, or of the others.
std::uint64_t changes_ahead(const FileFacts& file, bool of_neighbours) {
  std::uint64_t sum = 0;
  for (const auto& [path, count] : file.changed_ahead) {
    if (!is_shared_state_by_name(path) && is_neighbour(file, path) == of_neighbours) sum += count;
  }
  return sum;
}

// A kill loses what is not synchronised of a file that Pawl has, and nothing of any other.
void judge_neighbours(const FileFacts& file, std::vector<Remark>& remarks) {
  const bool is_behind = file.synchronisations.empty() || is_changed_mostly_behind(file) ||
                         changes_ahead(file, true) >= kChangesAheadMin;
  const bool has_log = saw(file, Sight::log_beside);
  if (!has_log && !(is_behind && saw(file, Sight::file_beside))) return;
  const Seen& seen = file.seen.at(has_log ? Sight::log_beside : Sight::file_beside);
  add(remarks,
      {"companion", has_log && is_behind ? Weight::cannot : Weight::but, seen.count, seen.example,
       "the program writes to a file that seems to belong to this one, and that is not mapped: a "
       "kill takes back what this file was not synchronised with, and nothing of the other, so "
       "that the two no longer fit, as after a power cut without Pawl",
       is_behind
           ? "leave it out of --atomic, or have the program synchronise it as for a power cut "
             "(SQLite: synchronous=NORMAL or FULL)"
           : "name it with --atomic only if the program's own synchronisations would carry both "
             "files through a power cut"});
}

std::string list_of(const std::set<std::string>& paths) {
  std::string names;
  for (const std::string& path : paths | std::views::take(kChangedAlongNamesMax))
    names += (names.empty() ? "" : ", ") + path;
  if (paths.size() > kChangedAlongNamesMax)
    names += fmt::format(" and {}", count_text(paths.size() - kChangedAlongNamesMax, "other file"));
  return names;
}

// Where a kill takes this file back to what it was long ago, all that was written besides is
// newer: whatever it is called, it may belong to it.  Else what was written while this file had
// changes that were not synchronised.
void judge_changed_along(const ProgramFacts& facts, const FileFacts& file,
                         std::vector<Remark>& remarks) {
  const bool goes_far_back = std::ranges::any_of(remarks, [](const Remark& remark) {
    return remark.code == kNeverSynchronised || remark.code == kSynchronisedEarly ||
           remark.code == kSynchronisedAtEnds;
  });
  const std::uint64_t ahead = changes_ahead(file, false);
  std::set<std::string> paths;
  if (goes_far_back) {
    for (const FileKey& key : file.changed_along) {
      const auto found = facts.unmapped.find(key);
      if (found != facts.unmapped.end()) paths.insert(found->second);
    }
  } else if (ahead >= kChangesAheadMin) {
    for (const auto& [path, count] : file.changed_ahead) paths.insert(path);
  }
  std::erase_if(paths, [&](const std::string& path) {  // other findings name them
    return is_shared_state_by_name(path) || is_neighbour(file, path);
  });
  if (paths.empty()) return;
  add(remarks,
      {"changed_along", Weight::but, goes_far_back ? paths.size() : ahead, list_of(paths),
       goes_far_back
           ? "the program writes, makes or renames these files too, and Pawl does not have them: "
             "at a kill they keep everything, while this file goes back to its last commit"
           : "the program writes, makes or renames these files, which Pawl does not have, while "
             "this one has changes that are not synchronised: at a kill they keep everything, "
             "while this file goes back to its last commit",
       "see whether the program gets by with old bytes in this file and new ones in those, as "
       "after a power cut; if not, leave this file out of --atomic, or have the program "
       "synchronise it before it writes the others"});
}

// Files that Pawl can add nothing to: true when the file is one.
bool needs_nothing(const FileFacts& file, std::vector<Remark>& remarks) {
  if (file.has_sections) {
    remarks = {{"file_of_sections", Weight::note, 1, "",
                "it is a file of failure-atomic sections (pawl_fase_open()), which keeps itself "
                "whole: 'pawl run' leaves it alone",
                "nothing: what the program does to it needs no 'pawl run'"}};
    return true;
  }
  if (file.asks_for_pawl || file.mappings == 0) return false;
  if (file.synchronisations.empty() && is_shared_state_by_name(file.path)) {
    remarks = {{kSharedState, Weight::note, 1, "",
                "by its name this file holds locks or counters that processes share while they "
                "run (a lock file, SQLite's -shm, LMDB's or libmdbx's table of readers, Berkeley "
                "DB's regions, the JVM's counters): it "
                "need not survive a crash, and other processes must be able to map it",
                "leave it out of --atomic"}};
    return true;
  }
  if (file.is_mapped_writable) return false;
  const bool is_changed = !file.changes.empty() || saw(file, Sight::other_process) ||
                          saw(file, Sight::forked_child) || saw(file, Sight::linux_aio) ||
                          saw(file, Sight::stream_write);
  if (!is_changed && file.synchronisations.empty()) {
    remarks = {{"only_read", Weight::note, 1, "",
                "the program maps the file for reading only, and did not change it this time",
                "leave it out of --atomic; if the program changes it at other times, watch it "
                "then"}};
    return true;
  }
  const bool synchronises = std::ranges::any_of(file.synchronisations, [](const auto& entry) {
    return entry.first == kFsync || entry.first == kFdatasync || entry.first == kDurableWrite;
  });
  if (file.changes.empty() || !synchronises || is_changed_mostly_behind(file)) return false;
  remarks = {{"synchronises_itself", Weight::note, 1, "",
              "the program maps the file for reading only, and synchronises its writes itself, as "
              "databases do that withstand a power cut by a log or by copies of their own (SQLite "
              "with synchronous=FULL, LMDB, bbolt)",
              "leave it out of --atomic: it needs no protection. Only where the program writes in "
              "place, so that a crash between two writes leaves the file torn, is it worth to name "
              "it"}};
  return true;
}

void judge_flag(const FileFacts& file, std::vector<Remark>& remarks) {
  if (!file.asks_for_pawl) return;
  add(remarks, {"asks_for_pawl", Weight::but, 1, "mmap with MAP_ATOMIC",
                "the program asks for an atomic mapping itself, which the kernel alone refuses: "
                "what it does "
                "with one was not seen",
                "run it under 'pawl run', which makes the mapping and says what it refuses"});
}

void judge_directory(const FileFacts& file, std::vector<Remark>& remarks) {
  if (!file.can_create) {
    add(remarks, {"no_journal", Weight::cannot, 1, "",
                  "no file can be made in the file's directory, and a journal stands beside its "
                  "file",
                  "give the program write permission there, or keep the file elsewhere"});
  }
  for (const Finding& finding : file.directory) {
    if (finding.level != Level::unsafe) continue;
    if (finding.name == kReservation) {
      add(remarks, {"no_reservation", Weight::cannot, 1, "",
                    "the file system has no fallocate(2) (ext2, vfat), by which Pawl reserves "
                    "space: mmap() fails with EOPNOTSUPP",
                    "keep the file on ext4, XFS, f2fs or btrfs"});
      continue;
    }
    add(remarks,
        {"unsafe_directory", Weight::but, 1, fmt::format("{}: {}", finding.name, finding.value),
         finding.why,
         fmt::format("keep the file on a local disk; 'pawl doctor {}' tells more",
                     file.path.substr(0, std::max<std::size_t>(file.path.rfind('/'), 1)))});
  }
}

bool has_changes_after(const Holding& holding) {
  return holding.writes_after > 0 || holding.has_stores_after;
}

// In the first tenth of what the process did with the file.
bool is_early(const Holding& holding) {
  return holding.after >= kEarlyAfterMin && holding.after >= kEarlyAfterTimes * holding.before;
}

// A server that was idle for most of the time that it was watched did synchronise what it changed:
// time alone speaks only against a single synchronisation.
bool is_left_behind(const Holding& holding, const Ending& ending) {
  if (holding.synchronisations == 0) return false;
  const bool is_single = holding.synchronisations == 1;
  if (has_changes_after(holding)) return is_early(holding) || (is_single && ending.signal == 0);
  return is_single && is_early(holding) && holding.after >= kIdleAfterMin;
}

std::string left_behind_text(const Holding& holding) {
  return fmt::format(
      "the last of {} came {} after the file was mapped, {} before it was let go{}{}",
      count_text(holding.synchronisations, "synchronisation"), duration_text(holding.before),
      duration_text(holding.after),
      holding.writes_after > 0
          ? fmt::format("; after it {}", count_text(holding.writes_after, "write"))
          : std::string(),
      holding.has_stores_after ? "; it was stored to after it" : "");
}

// Before and after most of what the process did with the file, and not meanwhile.
bool is_at_ends(const Holding& holding) {
  return holding.synchronisations > 1 && holding.longest_behind >= kIdleAfterMin &&
         holding.longest_behind >= kBehindTimes * (holding.lasted - holding.longest_behind);
}

// Left out where there is more to say.
void judge_frequency(const FileFacts& file, const Ending& ending, std::vector<Remark>& remarks) {
  const auto left_behind = std::ranges::find_if(
      file.holdings, [&](const Holding& holding) { return is_left_behind(holding, ending); });
  const bool is_left_behind = left_behind != file.holdings.end();
  const bool has_calls_behind = !file.synchronisations.empty() &&
                                file.furthest.behind >= kChangesBehindMin &&
                                is_changed_mostly_behind(file);
  if (is_left_behind || has_calls_behind) {
    add(remarks,
        {kSynchronisedEarly, Weight::but, has_calls_behind ? file.furthest.behind : 1,
         is_left_behind ? left_behind_text(*left_behind) : std::string(),
         "a process went on with the file after its last synchronisation of it: under Pawl a crash "
         "at any time after that, and a kill as well, takes the file back to that moment, which "
         "without Pawl only a power cut does",
         "nothing, where a crash may take all of it back; else have the program synchronise the "
         "file wherever its data is consistent, as for a power cut (SQLite: synchronous=NORMAL or "
         "FULL)"});
  }
  if (const auto at_ends = std::ranges::find_if(file.holdings, is_at_ends);
      at_ends != file.holdings.end()) {
    add(remarks,
        {kSynchronisedAtEnds, Weight::but, 1,
         fmt::format("it had changes for {} of {} without one",
                     duration_text(at_ends->longest_behind), duration_text(at_ends->lasted)),
         "a process synchronised the file when it began and when it ended, and not while it "
         "changed it: all of that is one commit, and a crash before the last one, or a kill, takes "
         "the file back to the first",
         "nothing, where that is what must be whole, as in a command that makes its change and "
         "ends; else have the program synchronise the file wherever its data is consistent"});
  }
  const bool is_fine = std::ranges::all_of(
      remarks, [](const Remark& remark) { return remark.weight == Weight::note; });
  const bool is_once =
      std::ranges::any_of(file.holdings,
                          [](const Holding& one) { return one.synchronisations == 1; }) &&
      std::ranges::none_of(file.holdings,
                           [](const Holding& one) { return one.synchronisations > 1; });
  if (!is_fine || ending.signal != 0 || !is_once) return;
  add(remarks,
      {"synchronised_once", Weight::note, 1, "",
       fmt::format("the file is synchronised once, near the end of what the program does with it: "
                   "there is one commit before the close, and a crash before it leaves the file {}",
                   kAsFirstMapped),
       "nothing, where that is what must be whole; else have the program do more of its work while "
       "it is watched, or call msync(MS_SYNC) more often"});
}

void heaviest_first(std::vector<Remark>& remarks) {
  std::vector<Remark> sorted;
  for (const Weight weight : {Weight::cannot, Weight::but, Weight::note}) {
    for (const Remark& remark : remarks) {
      if (remark.weight == weight) sorted.push_back(remark);
    }
  }
  remarks = std::move(sorted);
}

FileJudgement judge_file(const ProgramFacts& facts, const FileKey& key) {
  const FileFacts& file = facts.files.at(key);
  FileJudgement judgement;
  judgement.key = key;
  judgement.needs_nothing = needs_nothing(file, judgement.remarks);
  if (judgement.needs_nothing) return judgement;
  for (const Meaning& meaning : kMeanings) {
    const auto seen = file.seen.find(meaning.sight);
    if (seen == file.seen.end() || is_said_by_another(file, meaning.sight)) continue;
    // Of a file that is never synchronised the other remark says it.
    if (meaning.sight == Sight::unmapped_unsynchronised && file.synchronisations.empty()) continue;
    add(judgement.remarks, remark_of(meaning, seen->second));
    if (meaning.sight == Sight::inherited) judgement.is_in_doubt = true;
    if (meaning.sight == Sight::reader && file.synchronisations.empty()) {
      judgement.remarks.back().why =
          "other processes see nothing of what the program does to the file until it is closed, "
          "for it is never synchronised";
      judgement.remarks.back().advice =
          "leave it out of --atomic where others must see it meanwhile, as with counters that a "
          "server collects; else let them read when it is closed";
    }
  }
  judgement.is_asynchronous = asks_for_later(file);
  judge_synchronisation(file, judgement.remarks);
  judge_neighbours(file, judgement.remarks);
  judge_flag(file, judgement.remarks);
  judge_directory(file, judgement.remarks);
  judge_frequency(file, facts.ending, judgement.remarks);
  judge_changed_along(facts, file, judgement.remarks);
  heaviest_first(judgement.remarks);
  if (!judgement.remarks.empty()) judgement.verdict = judgement.remarks.front().weight;
  return judgement;
}

// Locks and counters under names that nobody knows: the program synchronises what matters to it.
bool is_like_shared_state(const FileFacts& file) {
  const bool is_only_resized = std::ranges::all_of(file.changes, [](const auto& entry) {
    return entry.first == "ftruncate" || entry.first == "fallocate" || entry.first == "truncate";
  });
  return file.synchronisations.empty() && file.is_mapped_writable && is_only_resized;
}

// What Pawl refuses keeps all that was written to it, as what is not mapped does.
void judge_refused_neighbours(const ProgramFacts& facts, std::vector<FileJudgement>& files) {
  for (FileJudgement& file : files) {
    if (file.is_left_out) continue;
    const std::string& path = facts.files.at(file.key).path;
    for (const FileJudgement& other : files) {
      const std::string& other_path = facts.files.at(other.key).path;
      if (other.verdict != Weight::cannot || (neighbour_of(path, other_path) == Neighbour::none &&
                                              neighbour_of(other_path, path) == Neighbour::none)) {
        continue;
      }
      add(file.remarks,
          {"companion", Weight::but, 1, other_path,
           "Pawl cannot protect a file that seems to belong to this one: a kill takes back what "
           "this file was not synchronised with, and nothing of the other",
           "name it with --atomic only if the program's own synchronisations would carry both "
           "files through a power cut"});
    }
    heaviest_first(file.remarks);
    if (!file.remarks.empty()) file.verdict = file.remarks.front().weight;
  }
}

// Under --group all that the globs take is in the group.
std::string way_together(std::size_t files) {
  if (files <= journal::kGroupFilesMax) {
    return "if they must move together, 'pawl run --group FILE' commits them by one record";
  }
  return fmt::format(
      "if they must move together: 'pawl run --group FILE' commits them by one record, but a group "
      "has at most {} files and the program maps {}; name with --atomic only those that belong "
      "together",
      journal::kGroupFilesMax, files);
}

// Without Pawl a kill leaves both as they are; with it, it takes this one back further.
void judge_apart(const ProgramFacts& facts, std::vector<FileJudgement>& files) {
  for (FileJudgement& file : files) {
    if (file.is_left_out || facts.files.at(file.key).synchronisations.empty()) continue;
    for (const auto& [pair, count] : facts.synchronised_ahead) {
      if (pair.first != file.key || count < kSynchronisationsAheadMin) continue;
      const auto other = std::ranges::find(files, pair.second, &FileJudgement::key);
      const bool can_group = other != files.end() && !other->is_left_out;
      add(file.remarks,
          {"synchronised_apart", Weight::but, 1,
           fmt::format("{} {}", facts.files.at(pair.second).path, count_text(count, "time")),
           "another file was synchronised so often between two synchronisations of this one, which "
           "was changed meanwhile: a kill takes each back to its own last commit, this one further "
           "than the other, as a power cut does without Pawl",
           can_group ? way_together(files.size())
                     : "leave this file out of --atomic, too, or have the program synchronise it "
                       "before the other one"});
    }
    heaviest_first(file.remarks);
    if (!file.remarks.empty()) file.verdict = file.remarks.front().weight;
  }
}

void leave_out(const ProgramFacts& facts, std::vector<FileJudgement>& files) {
  const bool is_any_synchronised = std::ranges::any_of(files, [&](const FileJudgement& file) {
    return !facts.files.at(file.key).synchronisations.empty();
  });
  for (FileJudgement& file : files) {
    file.is_left_out = file.verdict == Weight::cannot || file.needs_nothing ||
                       (is_any_synchronised && is_like_shared_state(facts.files.at(file.key)));
  }
}

bool holds_shared_state(const FileJudgement& file) {
  return std::ranges::any_of(file.remarks,
                             [](const Remark& remark) { return remark.code == kSharedState; });
}

void judge_program(const ProgramFacts& facts, Judgement& judgement) {
  std::vector<Remark>& remarks = judgement.remarks;
  if (judgement.files.empty() && facts.has_libpawl) {
    remarks.push_back({"calls_pawl", Weight::note, 1, "",
                       "the program has libpawl loaded and calls Pawl by itself; it mapped no "
                       "other file",
                       "nothing: it needs no 'pawl run'"});
  } else if (std::ranges::all_of(judgement.files, holds_shared_state)) {
    judgement.can_protect = false;
    remarks.push_back({"nothing_mapped", Weight::but, 1, "",
                       "the program mapped no file shared through a descriptor that is open for "
                       "reading and writing, or none that --atomic names, or only locks and other "
                       "shared state: there is nothing for "
                       "'pawl run' to protect",
                       "have it do the work that matters while it is watched; look at --atomic"});
  }
  if (facts.io_uring.count > 0) {
    remarks.push_back({"io_uring", Weight::but, facts.io_uring.count, facts.io_uring.example,
                       "what goes through io_uring passes the preload face by, and was not seen "
                       "here either",
                       "see that the files that are mapped are not written or synchronised through "
                       "it"});
  }
  if (facts.pinned_buffers.count > 0) {
    remarks.push_back({"pinned_buffers", Weight::but, facts.pinned_buffers.count,
                       facts.pinned_buffers.example,
                       "the program registers buffers with io_uring; what the kernel stores into "
                       "them is not committed if they lie in a file that Pawl maps",
                       "keep registered buffers out of such files, or call pawl_stored() after "
                       "each read into one"});
  }
  for (const auto& [path, why] : facts.not_preloadable) {
    if (maps_a_file(facts, path)) continue;  // told of with the file
    remarks.push_back({"not_preloadable", Weight::note, 1, path, why,
                       "nothing, unless that program maps files that matter; it was not seen to"});
  }
  // Numbered files are told of once.
  std::map<std::pair<std::string, std::string>, std::uint64_t> in_one_go;
  for (const auto& [pair, count] : facts.in_one_go) {
    const std::string& first = facts.files.at(pair.first).path;
    const std::string& second = facts.files.at(pair.second).path;
    const bool are_alike = without_numbers(first) == without_numbers(second);
    in_one_go[are_alike ? std::pair(without_numbers(first), without_numbers(second))
                        : std::pair(first, second)] += count;
  }
  for (const auto& [pair, count] : in_one_go) {
    remarks.push_back({"in_one_go", Weight::note, count,
                       pair.first == pair.second
                           ? fmt::format("two files {}", pair.first)
                           : fmt::format("{} and then {}", pair.first, pair.second),
                       "these are synchronised one right after the other. Each is atomic by "
                       "itself: a crash between the two leaves the first new and the second old",
                       way_together(judgement.files.size())});
  }
  for (const std::string& glob : facts.unmatched_globs) {
    if (judgement.files.empty()) break;  // told of already
    remarks.push_back({"unmatched_glob", Weight::but, 1, glob,
                       "no file that was mapped matches this glob",
                       "look at its spelling: one with a '/' is matched against the absolute real "
                       "path, and '*' stops at '/'"});
  }
  if (facts.ending.signal != 0) {
    remarks.push_back(
        {"killed", Weight::note, 1,
         fmt::format("{} ({})", facts.ending.signal, ::strsignal(facts.ending.signal)),
         "a signal ended the program: under 'pawl run' its files are then as the "
         "last commit left them",
         "what it would have done later was not seen"});
  }
  heaviest_first(remarks);
}

}  // namespace

const char* weight_name(Weight weight) {
  switch (weight) {
    case Weight::note:
      return "note";
    case Weight::but:
      return "but";
    case Weight::cannot:
      return "cannot";
  }
  return "unknown";
}

Judgement judge(const ProgramFacts& facts) {
  Judgement judgement;
  for (const FileKey& key : facts.order) {
    const FileFacts& file = facts.files.at(key);
    // Looked at, and then mapped in a way that is none of Pawl's.
    if (file.mappings == 0 && !file.asks_for_pawl && file.seen.empty()) continue;
    judgement.files.push_back(judge_file(facts, key));
  }
  leave_out(facts, judgement.files);
  judge_refused_neighbours(facts, judgement.files);
  judge_apart(facts, judgement.files);
  judge_program(facts, judgement);
  const auto weigh = [&](Weight weight) {
    judgement.is_fine = judgement.is_fine && weight == Weight::note;
    judgement.can_protect = judgement.can_protect && weight != Weight::cannot;
  };
  for (const FileJudgement& file : judgement.files) weigh(file.verdict);
  for (const Remark& remark : judgement.remarks) weigh(remark.weight);
  return judgement;
}

}  // namespace pawl::cli::watch
