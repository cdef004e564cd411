// How bytes become durable.  This is the only seam through which Pawl touches a file: a block file
// (block_medium), or one that a test makes up to lose, tear and refuse writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "medium/permissions.h"
#include "medium/status.h"

namespace pawl {

inline constexpr std::size_t kPageBytes = 4096;

constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) {
  return value / unit * unit;
}
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}
// std::has_single_bit() counts the bits, which takes a call where not all processors can.
constexpr bool is_power_of_two(std::uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

// One open file.  Any thread may call; reads and writes of the same bytes are ordered by the
// caller.
class MediumFile {
 public:
  MediumFile() = default;
  MediumFile(const MediumFile&) = delete;
  MediumFile& operator=(const MediumFile&) = delete;
  virtual ~MediumFile() = default;

  // Fills `into` from `offset`; bytes past the end of the file read as zeros.
  virtual Status read(std::uint64_t offset, std::span<std::byte> into) = 0;
  // Writes all of `from`, or fails.  Not durable before flush().  The journal's file may need
  // offset, length and address aligned to the medium's block_bytes().
  virtual Status write(std::uint64_t offset, std::span<const std::byte> from) = 0;
  // Everything written, and the size, is durable on success.  A failure is EIO, and final (law 8).
  virtual Status flush() = 0;
  // write() and then flush(); in one step where the medium has one.
  virtual Status write_durably(std::uint64_t offset, std::span<const std::byte> from);
  // From now on write() leaves the bytes in the machine's memory, where they outlive the process,
  // and does not wait for a device.  Without effect where it does so anyway.
  virtual void use_page_cache() {}
  virtual Result<std::uint64_t> size() = 0;
  virtual Status resize(std::uint64_t size_bytes) = 0;
  // EFBIG where the file system has no file of that size.
  virtual Status check_size(std::uint64_t /*size_bytes*/) { return {}; }
  // Allocates space for the range without changing content or size, so that a later write of it
  // cannot fail for want of space (as far as the file system can promise that).  Blocks that the
  // file shares with another are copied.
  virtual Status reserve(std::uint64_t offset, std::uint64_t length) = 0;
  // Calls `found` with the start and the end of each extent that overlaps [offset, end) and whose
  // blocks the file shares with another (a reflink): to write there takes new space.  Returns up to
  // where it looked: past `offset`, and `end` when there is no more to see.
  using FoundShared = std::function<void(std::uint64_t start, std::uint64_t end)>;
  virtual Result<std::uint64_t> find_shared(std::uint64_t offset, std::uint64_t end,
                                            const FoundShared& found);
  // What shares its blocks is copied by so much at a time, whatever part of that is written: the
  // file's block, which may be larger than a page.
  virtual std::uint64_t shared_unit_bytes() { return kPageBytes; }
  // The first byte from `offset` on that is not in a hole, so that it may be other than zero;
  // `offset` itself where that is not known, and kNoData where only holes are left.
  static constexpr std::uint64_t kNoData = ~std::uint64_t{0};
  virtual std::uint64_t find_data(std::uint64_t offset) { return offset; }
  // Where every overwrite takes new space (a copy-on-write file system): ENOSPC unless so many
  // bytes are free just now.  Nobody keeps them.
  virtual Status check_overwrite(std::uint64_t bytes);
  // So many bytes are free where the file is; kNotBounded where that is not known.
  static constexpr std::uint64_t kNotBounded = ~std::uint64_t{0};
  virtual std::uint64_t free_bytes() { return kNotBounded; }
  // Makes the range read as zeros and gives its space back; the size stays.
  virtual Status punch(std::uint64_t offset, std::uint64_t length) = 0;
  // Makes the range read as zeros and keeps (or takes) its space; the size stays.
  virtual Status zero(std::uint64_t offset, std::uint64_t length) = 0;
  // EIO when the descriptor by which the file is written is not the file's any more: the program
  // closed it, and may have opened something else under its number.
  virtual Status check_open() { return {}; }
  // ESTALE when the file has no name any more.
  virtual Status check_named() { return {}; }
  // The file's bytes where they can be loaded directly, at an address that stays for the object's
  // life: of a medium that is memory.  Null for others.  Only bytes of allocated pages before the
  // file's end may be loaded.
  virtual const std::byte* in_place() const { return nullptr; }
  // write() there, of bytes before the end that have their space: it takes no lock and cannot fail.
  virtual void write_in_place(std::uint64_t offset, std::span<const std::byte> from);
  // The end of the run of bytes, from offset 0, that stand in blocks that were written: what comes
  // behind it is a hole, or was only reserved.  The file's size where that is not known.
  virtual Result<std::uint64_t> written_prefix_bytes() { return size(); }
  // The end of the run of allocated bytes, of blocks that are the file's alone, that starts at
  // offset 0; or less.
  virtual Result<std::uint64_t> allocated_prefix_bytes() = 0;
};

using JournalId = std::array<std::byte, 16>;

// What binds a journal to its file where the mark cannot: the inode and its birth.
struct FileIdentity {
  std::uint64_t inode = 0;
  // Where the file system keeps none, the generation of the inode, which has 32 bits; 0 where it
  // has neither.
  std::uint64_t birth_time_ns = 0;
  // Of a file that was asked: its generation also where there is a birth time, or 0.  Whoever
  // stored its identity may have had to do without the birth time: a sandbox refused the question,
  // or the inode had no place for the answer yet.  Not stored itself.
  std::uint64_t generation = 0;

  bool operator==(const FileIdentity& other) const {
    return inode == other.inode &&
           (birth_time_ns == other.birth_time_ns || has_number(other) || other.has_number(*this));
  }
  // Whether nothing shows that they are two files: their numbers cannot be compared.
  bool may_be(const FileIdentity& other) const {
    return *this == other || (inode == other.inode && !is_comparable(other));
  }
  // The kernel gives it to no second file.  The owner of a file may choose its generation.
  bool is_proof() const { return birth_time_ns > std::numeric_limits<std::uint32_t>::max(); }

 private:
  // That of the other is our generation.
  bool has_number(const FileIdentity& other) const {
    return generation != 0 && generation == other.birth_time_ns;
  }
  bool is_comparable(const FileIdentity& other) const {
    if (birth_time_ns == 0 || other.birth_time_ns == 0) return false;
    return is_proof() == other.is_proof() || (is_proof() ? generation : other.generation) != 0;
  }
};

// What an open file carries (law 12), so that opening it without its journal is an error.
struct Mark {
  JournalId journal_id{};
  std::string journal_path;
  bool is_opening = false;  // its writer has not committed yet: no journal has anything of the file
  // Of an opening: the journal that its setter had brought into the file, and shows by this to have
  // known.  All zeros where there was none.
  JournalId recovered_id{};
  // Which file was marked, and which is its journal: copies carry the mark of what they are of.
  // All zeros where that is not known.
  FileIdentity file{};
  FileIdentity journal{};

  // Of an opening: whether it shows that its setter knew the journal of that id.
  bool knows(const JournalId& id) const { return id == recovered_id || id == journal_id; }
};

// What was found of a marked file whose journal is not beside it.
struct SoughtJournal {
  enum class Found {
    nothing,
    writer,   // someone has the file mapped, under another name
    journal,  // at `path`
    copy,     // the mark is that of another file, of which this one is a copy
  };
  Found found = Found::nothing;
  std::string path;
};

inline constexpr std::uint64_t kNoRecordIsHeld = ~std::uint64_t{0};

// Whose side file it is.
enum class SideFileOwner {
  of_file,  // the user file's owner, or root
  caller,   // the process that asks, and neither of those
  other,    // another user who may write the file: the mark says so (docs/journal-format.md).  What
            // it holds is replayed, and it never becomes this process's own journal
};

struct JournalFile {
  std::unique_ptr<MediumFile> file;
  bool is_new = false;  // was made by this call: empty, and not published
  SideFileOwner owner = SideFileOwner::of_file;
};

// What of a damaged journal stays beside the file under another name.
enum class Kept { itself, copy };

// One user file and its side file.
class Medium {
 public:
  Medium() = default;
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;
  virtual ~Medium() = default;

  virtual MediumFile& base() = 0;
  virtual FileIdentity identity() const = 0;
  // The descriptor by which the file is written, open O_RDWR for as long as the medium lives; -1
  // where the medium has none.
  virtual int base_descriptor() const { return -1; }
  // Of the file system that it is in.  0 where the medium is none.
  virtual std::uint64_t device() const { return 0; }
  virtual const std::string& path() const = 0;          // for messages
  virtual const std::string& journal_path() const = 0;  // for messages
  // The user id of the file's owner.  One for all where files have none.
  virtual Result<std::uint32_t> owner() { return std::uint32_t{0}; }

  // What the records of its journal are padded to: kPageBytes, or a cache line of a medium that is
  // memory.
  virtual std::uint64_t block_bytes() const { return kPageBytes; }

  // Opens the side file for writing and takes the writer's lock on it; EBUSY when another holds it,
  // or writes the file under another name.
  // With `create` a missing one is made, with the user file's owner and mode, under a provisional
  // name that publish_journal() changes; without: ENOENT.
  virtual Result<JournalFile> acquire_journal(bool create) = 0;
  // Gives an existing side file that was acquired the rights of the user file, before something is
  // written into it.  Not before it is known to be the file's journal: whatever has that name would
  // get them.  `owner` is what acquire_journal() answered; `other`, where that is not to be
  // changed, or the side file grants more than the file and is not this process's to change.
  virtual SideFileOwner adopt_journal(SideFileOwner owner) { return owner; }
  // The name of the side file is durable on return; a new one gets it here, and before that all
  // that was written into it is durable.  A reader never meets one that is half made.
  virtual Status publish_journal() = 0;
  // Opens the side file for reading, without the lock.  ENOENT when there is none.
  virtual Result<std::unique_ptr<MediumFile>> read_journal() = 0;
  virtual Status remove_journal() = 0;
  // Of a side file that is locked, and has nothing of the file: under a provisional name nobody
  // takes it for the journal of whatever gets the file's name; remove_journal() removes it from
  // there. EACCES, EPERM, ...: PAWL_ERROR_LEFT_BEHIND.  Back, its name is durable on return.
  virtual Status hide_journal() { return {}; }
  virtual Status show_journal() { return {}; }
  // For a file that is let go of and will be taken again: from now on what else shows that it has a
  // writer than the lock on the side file stays as long as the medium lives, or until another one
  // of the same file takes it over, before that acquires its journal; and clear_mark() leaves a
  // sign that it is to be asked for.  Where that cannot be left, it fails as clear_mark() does.
  virtual Status stay_the_writer() { return {}; }
  // It is not taken again: the sign goes.
  virtual void is_writer_no_more() {}
  virtual void take_over_writer(Medium& /*aside*/) {}
  // Of a damaged side file, which was acquired and has its name: gives it, or a copy of it, another
  // name beside the file.  That is the answer.
  virtual Result<std::string> keep_journal_aside(Kept kept);
  // Of the side file that was acquired: the sequence number of the first record that somebody needs
  // who copies the file from base and records (a snapshot), and asks to be kept, with all after it.
  virtual std::uint64_t first_held_record() const { return kNoRecordIsHeld; }

  // Of the side file that was acquired, or is there to be read; all zeros where there is none.
  virtual Result<FileIdentity> journal_identity() { return FileIdentity{}; }
  // Makes the file this opener's, before its journal, which is acquired, is formatted: sets an
  // opening mark with this id, and only if there is none.  The mark of an opening that failed is
  // replaced, and so is one with the id `recovered`, of which everything is in the file, durably.
  // EBUSY: another is the writer.
  virtual Status claim(const JournalId& journal_id,
                       const std::optional<JournalId>& recovered = std::nullopt);
  // Asks for the lock of the journal that a mark names, and for the journal.
  virtual Result<SoughtJournal> seek_journal(const Mark& mark);

  // Where the mark of an opening names a journal that stands under another name, locks that and
  // hands it to `empty`, which answers whether it was the file's and has, durably, no record any
  // more; then it is removed.  One that is not found is left, and so is that of a file of which
  // this one is a copy.  EBUSY: it has a writer.  EACCES: it may not be written.
  using EmptyJournal = std::function<Result<bool>(std::unique_ptr<MediumFile>)>;
  virtual Status retire_journal(const Mark& /*mark*/, const EmptyJournal& /*empty*/) { return {}; }

  // EBUSY: it has a writer.  One that has stepped aside has neither mark nor journal.
  virtual Status check_has_no_writer() { return {}; }

  // The mark.  set and clear are durable after the next base().flush(); set fills in which files
  // they are.
  virtual bool can_mark() const = 0;
  virtual Result<std::optional<Mark>> mark() = 0;
  virtual Status set_mark(const Mark& mark) = 0;
  virtual Status clear_mark() = 0;

  // Another file, by its name as seen from the directory of this one: of those that commit together
  // in a group.  EOPNOTSUPP where the medium has no groups.
  virtual Result<std::unique_ptr<Medium>> open_sibling(const std::string& name);
  // The group that the side file names, which may be anybody's word yet.  EPERM, and not opened:
  // it belongs neither to the owner of the base nor to root.
  virtual Result<std::unique_ptr<Medium>> open_group(const std::string& name) {
    return open_sibling(name);
  }

  // Maps part of the base copy-on-write: stores never reach the file.  Offset and length are
  // multiples of kPageBytes.  `flags` is MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_NORESERVE or 0.
  virtual Result<char*> map_private(void* address, std::size_t length, int protection, int flags,
                                    std::uint64_t offset) = 0;

  // Before a commit, by the thread that commits.  EIO as base().check_open().  ESTALE: the side
  // file has no name any more, and what is written to it goes with its last descriptor.  And the
  // side file lets nobody read or write it who may not do so with the base, whose mode, owner and
  // group may have been changed meanwhile: durably, for recovery believes no side file that lets
  // more.  A change of an access control list that leaves those is followed within kSeldomNs, and
  // where a commit makes no system call that holds of all.  EACCES: it lets more, and is not this
  // process's to change.
  virtual Status check_before_commit() { return base().check_open(); }

  // Who may read and write the base; nothing where files have no rights.
  virtual Result<std::optional<Rights>> rights();
  // What check_before_commit() saw of them last, as a number that a change of them changes.
  virtual std::uint64_t rights_seen() const { return 0; }
  // The same of the side file that was acquired, or is there to be read.
  virtual Result<std::optional<Rights>> journal_rights();
  // Of the side file of a group, which was acquired, and has no name yet: only its owner has rights
  // on it until limit_journal() says who else.
  virtual Status keep_journal_private() { return {}; }
  // It has bytes of a file with these rights from now on, or may have had: whoever may not read or
  // write that file, or one of those before, has no right on the side file.  Durable on success.
  // EACCES: somebody has, and the side file is not this process's to change.
  virtual Status limit_journal(const Rights& /*rights*/) { return {}; }
  // Of a journal with records of the base, beside another file.  EBADMSG: somebody may write that
  // who may not write the base.
  virtual Status check_writers_of_journal(const Rights& /*journal*/, const std::string& /*path*/) {
    return {};
  }
};

// 32 hexadecimal digits.
std::string describe_journal_id(const JournalId& id);

}  // namespace pawl
