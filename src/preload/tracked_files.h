// The files of this process that are Pawl mappings, and how the program reaches them: by
// descriptor, by inode, by address.
//
// A TrackedFile comes into being with the first atomic mmap of a file.  It lives until the program
// has neither a descriptor nor a window of it; then what is pending is committed and the file is
// closed cleanly.
//
// Locking order: Suspending and Withdrawing (lifecycle.h), start_lock(), then one
// TrackedFile::lock, then the table's own lock (innermost, held for a look-up or a change of the
// table and never across I/O). No thread holds two TrackedFile::locks, except fork(), which takes
// all of them under Suspending and start_lock().
//
// Signals: whoever holds one of these locks is inside() (see inside.h), with asynchronous signals
// blocked, so no handler of the program ever meets them half-way.  For descriptors and addresses
// that are not Pawl's, the look-ups take no lock at all.
//
// Bounds: kDescriptorsMax, kTrackedFilesMax.
#pragma once

#include "preload/interpose.h"

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "mapping/mapping.h"
#include "medium/address_range.h"
#include "medium/own_process.h"

namespace pawl::preload {

inline constexpr int kDescriptorsMax = 1 << 16;
inline constexpr std::size_t kTrackedFilesMax = 1024;
inline constexpr std::size_t kWindowHolesMax = 1024;

struct TrackedFile {
  TrackedFile(dev_t file_device, ino_t file_inode, std::string file_path)
      : device(file_device), inode(file_inode), path(std::move(file_path)) {}

  const dev_t device;
  const ino_t inode;
  const std::uint64_t memory = number_of_memory();  // that in which it is mapped

  // When it is worth again to wait for its window to go, by the steady clock.
  std::atomic<std::int64_t> waits_again{0};
  std::atomic<bool> has_said_invalid{false};  // that an msync() of it is
  std::uint64_t order = 0;  // among those that were ever in the table, from 1; set as it enters

  std::mutex lock;  // guards everything below
  std::string path;
  std::unique_ptr<Mapping> mapping;  // null before it has started and after it has ended
  bool asked_for_by_name = false;    // by a glob: msync has POSIX's meaning, not Pawl's
  bool inherited = false;            // by fork: the parent's, not ours to change
  bool has_ended = false;            // out of the table, or about to be
  // At the end of the process, which comes in several steps; what stands beside it may have stayed.
  bool is_closed = false;
  // A call gave it up and will take it up again: until then its file is the kernel's, and other
  // threads wait (hold_file).  Only the thread that is Suspending changes it.
  bool is_suspended = false;
  // A call gave it up and could not take it up again: what the program holds of it is the kernel's,
  // and no commit of it may succeed, until the program has let go of all.
  std::atomic<bool> is_lost{false};
  bool is_removed = false;  // lost with the name that the program took away: nobody misses it
  // Parts of the window that the program unmapped; they stay reserved until all of it goes.
  std::vector<AddressRange> holes;

  // In a child with a copy of the memory: what is left of the window refuses commits, and is the
  // child's own memory otherwise (medium/inherited_memory.h).
  bool is_of_other_memory() const { return memory != number_of_memory(); }
};

using TrackedFilePointer = std::shared_ptr<TrackedFile>;

// The lock under which files start, and under which all of them are stopped.
std::mutex& start_lock();

namespace table {

// Without a lock or memory; false means certainly not.
bool is_empty();
bool may_be_tracked(int descriptor);
bool may_have_windows_in(const AddressRange& range);
// The same; false means not, but for a file that another thread takes up or ends just now.
bool has_inode(dev_t device, ino_t inode);

TrackedFilePointer of_descriptor(int descriptor);
// That of this memory, if there is one.
TrackedFilePointer of_inode(dev_t device, ino_t inode);
// Of this memory only.
std::vector<TrackedFilePointer> with_windows_in(const AddressRange& range);
// Of other memory, what is left of their windows.
struct InheritedPart {
  AddressRange range;
  TrackedFilePointer file;
};
std::vector<InheritedPart> inherited_in(const AddressRange& range);
std::vector<TrackedFilePointer> all();
// The same without memory; returns how many there are.
std::size_t copy_all(std::span<TrackedFilePointer, kTrackedFilesMax> into);

// The first that entered the table behind the one of that order; null: there is none.  Without
// memory, and with hardly any stack.
TrackedFilePointer first_behind(std::uint64_t order);

// One that is lost, and this process's own; its path stays as it is.
TrackedFilePointer lost_file();

// False when the table is full.
bool insert(const TrackedFilePointer& file);
// Forgets the file, its descriptors and its window.
void erase(const TrackedFile& file);

// Where the number is the file's: another thread may be closing it, or have opened another file by
// it, and whose it was last stays so.  False when the number is beyond the table.
bool attach(int descriptor, const TrackedFilePointer& file);
// The file the descriptor belonged to, if any.
TrackedFilePointer detach(int descriptor);
// Only if it belongs to this file.
void detach_from(const TrackedFile& file, int descriptor);
std::vector<int> descriptors_of(const TrackedFile& file);
bool has_descriptors(const TrackedFile& file);
std::vector<int> descriptors_between(unsigned first, unsigned last);
void set_window(const TrackedFile& file, const AddressRange& range);
// Empty when the file is in the table without a window, or not in it, or a child has nothing left
// of the window.
AddressRange window_of(const TrackedFile& file);

// Around fork().
void lock_for_fork();
void unlock_after_fork();

}  // namespace table

}  // namespace pawl::preload
