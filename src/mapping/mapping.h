// One file under failure-atomic msync(): its working view, its tracker, its journal.
//
// A Mapping is opened on a file, shows at most one window of it in memory, and takes commits until
// it is closed.  The C API keeps one window from open to close; the preload face may unmap, remap,
// and read and write the file outside its window as well.
//
// Threads: every public function may be called from any thread; one lock a mapping orders them.
// Stores into the window are the program's; none may run while their range is committed (law 11).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "mapping/options.h"
#include "mapping/protected_part.h"
#include "medium/medium.h"
#include "medium/memory_functions.h"

namespace pawl {

struct Window {
  char* address = nullptr;
  std::size_t length = 0;         // bytes, a multiple of kPageBytes
  std::uint64_t file_offset = 0;  // a multiple of kPageBytes
  int protection = 0;
  std::vector<ProtectedPart> parts = {};  // with other protections than that
};

class Group;
struct MappingStatistics;  // see mapping/statistics.h

class Mapping {
 public:
  // Recovers the file if a crash left it behind, makes its journal, marks it.  On return the
  // file's present content is durable.  EBUSY: another writer has it.
  static Result<std::unique_ptr<Mapping>> open(std::unique_ptr<Medium> medium,
                                               const Options& options);

  // Releases memory and descriptors.  Does not close(): what was not committed is lost, and the
  // journal stays for the next open, as after a crash.
  ~Mapping();

  // Shows [file_offset, +length) at an address of the kernel's choosing, or at `address` with
  // MAP_FIXED or MAP_FIXED_NOREPLACE in `flags`.  Pages past the end of the file raise SIGBUS until
  // the file grows.  Pending writes of write() inside the window appear in it.
  Result<char*> map_window(void* address, std::size_t length, int protection, int flags,
                           std::uint64_t file_offset);
  // Removes the window.  With `keep`, what it holds uncommitted stays pending (as for MAP_SHARED),
  // else it is discarded.
  Status unmap_window(bool keep);
  // mremap(2): the window gets new_length, in place or (MREMAP_MAYMOVE) elsewhere, or exactly at
  // `fixed_address` when that is not null.  Pending changes are kept.  What it leaves is in `left`.
  Result<char*> remap_window(std::size_t new_length, bool may_move, void* fixed_address,
                             memory::LeftPlace& left);
  // The window ends `length` bytes behind its start from now on, and no byte of the file lies
  // behind that: what it had there is in `left`.
  Status shorten_window(std::size_t length, memory::LeftPlace& left);
  Status protect_window(void* address, std::size_t length, int protection);
  // madvise(2) as for a shared mapping of the file: no advice takes stores away.  EINVAL for what
  // such a mapping cannot take, and for what would take tracking away.
  Status advise(void* address, std::size_t length, int advice);
  // mlock2(2); for mlockall(2) clear_markers(), before and after, is what the tracker asks for.
  Status lock_memory(void* address, std::size_t length, unsigned flags);
  Status clear_markers(void* address, std::size_t length);
  std::optional<Window> window() const;

  // Commits the pages of [address, +length) of the window, with the size and with every pending
  // write outside the window, as one record.  Durable on success.
  Status commit(void* address, std::size_t length);
  // The same, of everything.
  Status commit_all();
  // Defines the batch now; durable later, in order.
  Status commit_async(void* address, std::size_t length);
  Status wait();
  // Back to the committed image; over the whole window, with the size and the pending writes too.
  Status roll_back(void* address, std::size_t length);

  // The size as this process sees it: durable with the next commit.
  std::uint64_t size() const;
  Status truncate(std::uint64_t size_bytes);
  // fallocate(2) without flags: space for the range is reserved, and the size grows to cover it.
  Status allocate(std::uint64_t offset, std::uint64_t length);
  // Like pread(2) and pwrite(2), coherent with the window: reads see pending stores; writes are
  // stores, pending until the next commit, and grow the file.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into);
  Status write(std::uint64_t offset, std::span<const std::byte> from);

  // True when there is anything that a commit would make durable (a tracker may say so in vain).
  bool has_pending_changes();

  // From now on each changed page of the window is shown to `check` before a commit logs it, with a
  // bit for each of its 64 lines that changed; a failure becomes the commit's, and nothing is
  // committed.  It may read the whole window, and is called with the mapping's lock held.
  using PageCheck = std::function<Status(std::uint64_t file_page, std::uint64_t changed_lines)>;
  void check_pages_with(PageCheck check);

  // Applies, flushes, removes mark and journal.  Uncommitted changes are discarded.  After a
  // failure the journal remains, and the next open recovers.
  Status close();
  // The file was unlinked: nothing is to survive.  Removes the journal without applying.
  Status discard();

  // For a file that is about to lose its name, or to get another: it is as the last commit left it,
  // by itself, without a mark and in no group; what is not committed is kept.  Until it comes back,
  // or ends, the window stays as it is, and takes stores; read() and size() answer as before, and
  // nothing else does.  Nobody else can become the file's writer.  On failure the mapping goes on
  // as before; only a failed write or flush is final.
  enum class Aside {
    loses_name,  // the journal stays, under a provisional name; so it does beside a file whose mark
                 // takes room to go, and then that stays as well
    is_renamed,  // the journal stays, under a provisional name
    is_closed,   // has no journal, for no code of ours may run any more
    is_ended     // the same, and does not come back: the journal's space may be needed for it to go
  };
  Status step_aside(Aside aside);
  // The name stayed: the mapping goes on.  On failure, as of one without a journal, it is aside.
  Status come_back();
  // The journal goes, with the space and the descriptors that it takes: a mapping that is opened
  // anew may need them.  On failure a journal of nobody stays under its provisional name.
  Status give_journal_up();
  // Behind give_journal_up(), once the name is gone: the base becomes what the program saw, and the
  // window goes.  None of it is a commit: what has no name does not survive.
  Status leave_in_base();
  // Where it cannot go on: the window stays, as memory of the program's own, and the file as it is.
  Status leave_in_memory();
  // This mapping, opened anew on the same file and without a window yet, gets the window of the one
  // that stepped aside, with all that was stored there until now, and has pending what that one
  // had. On failure `aside` still has everything.
  Status take_over(Mapping& aside);

  // Not in a forked child, where it may wait for ever.
  void statistics(MappingStatistics& statistics) const;
  // EPERM in a forked child.
  Status in_own_process() const;
  // In a child with a copy of the memory, and not in one that shares it.
  bool is_of_other_memory() const;
  const Medium& medium() const;
  Medium& medium();

 private:
  friend class Group;
  class Implementation;
  explicit Mapping(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

// Recovery without mapping: replays the journal beside the file, flushes, removes mark and journal.
// Returns the number of records replayed.  With `accept_loss`, what a damaged or missing journal
// cannot give is given up: the file is as the last whole record left it.  A journal without a valid
// header is refused even so, for nothing shows that it is one; `pawl recover` puts it aside.
Result<std::uint64_t> recover(Medium& medium, bool accept_loss = false);
// Before the file may lose its name, or get another: of a file that was left in a group all of that
// group is recovered, where that can be done, so that its list names the file no more.
Result<std::uint64_t> recover_with_group(Medium& medium);

}  // namespace pawl
