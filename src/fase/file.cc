#include "fase/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <future>
#include <map>
#include <random>
#include <system_error>
#include <thread>

#include "fase/program.h"
#include "fase/recovered_fase.h"
#include "fase/undo_recovery.h"
#include "heap/address_space.h"
#include "mapping/file_turn.h"
#include "mapping/open_mappings.h"
#include "medium/checksum.h"
#include "medium/fork_guard.h"
#include "medium/law.h"
#include "medium/memory_functions.h"
#include "medium/parked_descriptors.h"
#include "medium/persistent_medium.h"
#include "medium/sections_file.h"
#include "medium/size_limit.h"
#include "medium/unflushed_memory.h"

namespace pawl::fase {
namespace {

constexpr mode_t kNewFileMode = 0644;
constexpr int kAddressesTried = 16;
constexpr std::uint64_t kStatBlockBytes = 512;
constexpr std::array<char, 8> kUnfinishedMagic = kUnfinishedSectionsMagic;

std::uint32_t crc_of(const Identity& identity) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&identity);
  constexpr std::size_t kFrom = offsetof(Identity, crc32c) + sizeof identity.crc32c;
  return checksum(bytes + kFrom, sizeof identity - kFrom);
}

std::uint32_t crc_of(const Fingerprint& fingerprint) {
  return checksum(&fingerprint.size_bytes, sizeof fingerprint - sizeof fingerprint.crc32c);
}

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t draw_address(std::uint64_t size_bytes) {
  const std::uint64_t places = (kAddressMax - kAddressMin - size_bytes) / kAddressAlignment;
  std::random_device random;
  return kAddressMin +
         std::uniform_int_distribution<std::uint64_t>(0, places)(random) * kAddressAlignment;
}

Result<NamedFile> open_or_create(const char* path) {
  const parked_descriptors::OpenedFile file(path, O_RDWR | O_CREAT, kNewFileMode);
  if (!file.valid()) return FailedCall{errno, std::string("cannot open or create ") + path};
  return open_named_file(file.get(), For::sections);
}

Status check_number(std::uint64_t number, const std::string& path) {
  if (number <= kNumbersEnd / 2) return {};
  return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS,
                         path + " is damaged: a number of a section leaves none to count up to");
}

// Of a block that a log names.
Status as_damage(Status named, const std::string& path) {
  if (named.error_number() != EINVAL) return named;
  return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS,
                         path + " has a damaged log: " + named.text());
}

// What a file takes of a tmpfs, which counts that exactly, and looks at each page that it is asked
// for.  0 elsewhere.
std::uint64_t bytes_of_tmpfs(int descriptor) {
  struct statfs file_system{};
  struct stat file{};
  const bool is_known = ::fstatfs(descriptor, &file_system) == 0 &&
                        file_system.f_type == TMPFS_MAGIC && ::fstat(descriptor, &file) == 0;
  return is_known ? static_cast<std::uint64_t>(file.st_blocks) * kStatBlockBytes : 0;
}

const std::byte* bytes_of(const void* at) { return static_cast<const std::byte*>(at); }

}  // namespace

Status check_identity(const Identity& identity, const std::string& path, std::uint64_t file_bytes) {
  if (identity.magic != kMagic)
    return Status::failure(EINVAL, PAWL_ERROR_WRONG_KIND_OF_FILE,
                           path + " is no file of failure-atomic sections");
  if (identity.version > kVersion) {
    return Status::failure(ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION,
                           path + " is of version " + std::to_string(identity.version) +
                               ", made by a newer Pawl; this one knows version " +
                               std::to_string(kVersion));
  }
  if (identity.crc32c != crc_of(identity) || identity.logs_offset != kLogsOffset ||
      identity.scheme_logs_offset != kSchemeLogsOffset || identity.heap_offset != kHeapOffset ||
      identity.size_bytes < kHeapOffset + kAreaBytesMin ||
      (identity.size_bytes - kHeapOffset) % kChunkBytes != 0 ||
      identity.address % kAddressAlignment != 0 || identity.address < kAddressMin ||
      identity.size_bytes > kAddressMax - identity.address)
    return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS, path + " has a damaged header");
  if (file_bytes != identity.size_bytes) {
    return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS,
                           path + " has " + std::to_string(file_bytes) + " bytes of " +
                               std::to_string(identity.size_bytes) + ": it was cut");
  }
  return {};
}

std::vector<std::byte> recorded_fingerprint(const Header& header) {
  const Fingerprint& program = header.program;
  if (program.crc32c != crc_of(program) || program.size_bytes > program.bytes.size()) return {};
  return {program.bytes.begin(), program.bytes.begin() + program.size_bytes};
}

// -------------------------------------------------------------------------------------------
// opening

Result<std::unique_ptr<File>> File::open(const char* path, const FileOptions& options) {
  if (!options.is_unprotected) return open_once(path, options);
  // What a crash interrupted is finished with protection: there may be another crash meanwhile.
  FileOptions of_recovery = options;
  of_recovery.is_unprotected = false;
  auto recovered = open_once(path, of_recovery);
  if (!recovered.ok()) return recovered;
  const std::uint64_t fases_recovered = recovered.value()->fases_recovered();
  recovered.value().reset();
  auto file = open_once(path, options);
  if (file.ok()) file.value()->fases_recovered_ = fases_recovered;
  return file;
}

Result<std::unique_ptr<File>> File::open_once(const char* path, const FileOptions& options) {
  PAWL_TRY(Program::own().check());
  auto how = PersistentMemoryOptions::from_environment();
  if (!how.ok()) return how.status();
  auto memory = make_persistent_memory(how.value());
  if (!memory.ok()) return memory.status();
  Scheme scheme = Program::own().scheme();
  if (options.is_unprotected) scheme = Scheme::unprotected;
  const bool flushes = !options.is_unprotected && !options.flushes_on_fail;
  if (!flushes) memory.value() = std::make_unique<UnflushedMemory>();
  auto direct = std::make_unique<DirectMemory>(std::move(memory.value()), observer());
  auto made = make_guarded(path, std::move(direct), scheme, flushes);
  if (!made.ok()) return made;
  std::unique_ptr<File> file = std::move(made.value());
  const FileTurn turn(FileTurn::To::open_or_close, file->file_.device, file->file_.identity.inode);
  file->undo_is_atlas_ = options.undo_is_atlas;
  PAWL_TRY(file->lock());
  PAWL_TRY(file->exclude_journals());
  PAWL_TRY(file->find(options));
  PAWL_TRY(file->recover());
  PAWL_TRY(file->check_root());
  PAWL_TRY(file->begin_run());
  open_mappings::add_file(file.get(), file->file_.device, file->file_.identity.inode,
                          "one of failure-atomic sections");
  return file;
}

// A child that was forked before abandon() knows the descriptor would have the lock, for as long as
// it lives.
Result<std::unique_ptr<File>> File::make_guarded(const char* path,
                                                 std::unique_ptr<DirectMemory> memory,
                                                 Scheme scheme, bool flushes) {
  std::unique_ptr<File> file;  // forgets its guard, should it end here
  const NoFork no_fork;
  auto named = open_or_create(path);
  if (!named.ok()) return named.status();
  const bool is_persistent = is_in_persistent_memory(named.value());
  file.reset(new File(std::move(named.value()), std::move(memory), is_persistent, scheme, flushes));
  File* const own = file.get();
  no_fork.guard(own, {.before = [] {}, .in_parent = [] {}, .in_child = [own] { own->abandon(); }});
  return file;
}

File::~File() {
  forget_fork_guard(this);
  notices_.withdraw();
  unlock();
  blocks_.reset();
  if (header_ != nullptr) ::munmap(header_, mapped_bytes_);
  open_mappings::remove_file(this);
  parked_descriptors::close(base_.take());
}

Status File::lock() const {
  if (set_sections_lock(base_.descriptor(), F_WRLCK) == 0) return {};
  if (errno == EAGAIN || errno == EACCES)
    return Status::failure(EBUSY, PAWL_ERROR_IN_USE,
                           path() + " is open already, in this process or another");
  return FailedCall{errno, "cannot lock " + path()};
}

// Not left to the close alone: a child that no handler knew has the descriptor as well.  Where the
// program closed it the lock goes with the mapping.
void File::unlock() {
  if (process_.is_this() && base_.check_open().ok()) set_sections_lock(base_.descriptor(), F_UNLCK);
}

// A mapping with a journal puts its notices before it looks for those of others, and so does this:
// of two openers one sees the other at least.
Status File::exclude_journals() {
  const int descriptor = base_.descriptor();
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return FailedCall{errno, "cannot stat " + path()};
  const NoFork no_fork;  // a child that has the descriptor has the notices, too
  for (const Notice notice : {Notice::opener, Notice::writer}) {
    Status put = notices_.put(status, notice);
    // Where there is no /proc the mark has to do.
    if (!put.ok() && put.error_number() != ENOTSUP) return put;
  }
  // Never taken away: no mark ever stands for this file.  On a full disk it is opened without it.
  Status said = set_notice_attribute(descriptor, path());
  if (!said.ok() && !is_want_of_space(said.error_number())) return said;
  PAWL_TRY(check_has_no_commits(descriptor, path(), notices_));
  return check_has_no_journal(descriptor, path());
}

Status File::find(const FileOptions& options) {
  struct stat status{};
  if (::fstat(base_.descriptor(), &status) != 0) return FailedCall{errno, "cannot stat " + path()};
  Identity identity{};
  PAWL_TRY(base_.read(0, std::as_writable_bytes(std::span(&identity, 1))));
  if (status.st_size == 0 || identity.magic == kUnfinishedMagic)
    return make(kHeapOffset + options.heap_bytes);
  PAWL_TRY(check_identity(identity, path(), static_cast<std::uint64_t>(status.st_size)));
  PAWL_TRY(take_space_again(identity.size_bytes));
  PAWL_TRY(map(identity.address, identity.size_bytes));
  return open_blocks();
}

Status File::make(std::uint64_t size_bytes) {
  const int descriptor = base_.descriptor();
  // From here on until it is made the file says that it is not.
  const auto write_magic = [&] {
    return ::pwrite(descriptor, kUnfinishedMagic.data(), kUnfinishedMagic.size(), 0);
  };
  const auto resize = [&] { return ::ftruncate(descriptor, static_cast<off_t>(size_bytes)); };
  if (::ftruncate(descriptor, 0) != 0 ||
      without_size_signal(write_magic) != static_cast<ssize_t>(kUnfinishedMagic.size()) ||
      ::fsync(descriptor) != 0 || without_size_signal(resize) != 0) {
    const int failure = errno;
    return FailedCall{failure, "cannot make " + path(), code_of_size(failure, size_bytes)};
  }
  PAWL_TRY(take_space(0, kSchemeLogsOffset));
  Identity identity{};
  identity.version = kVersion;
  identity.size_bytes = size_bytes;
  identity.logs_offset = kLogsOffset;
  identity.scheme_logs_offset = kSchemeLogsOffset;
  identity.heap_offset = kHeapOffset;
  identity.creation_time_ns = now_ns();
  Status mapped;
  for (int attempt = 0; attempt < kAddressesTried; ++attempt) {
    identity.address = draw_address(size_bytes);
    mapped = map(identity.address, size_bytes);
    if (mapped.error_number() != EADDRINUSE) break;
  }
  if (!mapped.ok()) return mapped;
  PAWL_TRY(Blocks::make(heap_area(), *memory_));
  PAWL_TRY(open_blocks());
  identity.crc32c = crc_of(identity);
  identity.magic = kUnfinishedMagic;
  memory_->copy(reinterpret_cast<std::byte*>(&header_->identity),
                std::as_bytes(std::span(&identity, 1)));
  memory_->fence();
  std::uint64_t magic = 0;
  std::memcpy(&magic, kMagic.data(), sizeof magic);
  store_durably(*reinterpret_cast<std::uint64_t*>(&header_->identity.magic), magic);
  if (::fsync(descriptor) != 0) return FailedCall{errno, "cannot flush " + path()};
  return {};
}

Status File::map(std::uint64_t address, std::uint64_t size_bytes) {
  void* const wanted = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  const int flags = (is_persistent_ ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED) |
                    MAP_FIXED_NOREPLACE | MAP_NORESERVE;
  // Without access: what mlockall(2) of the program asks for mappings to come would fill the file.
  void* const at = ::mmap(wanted, size_bytes, PROT_NONE, flags, base_.descriptor(), 0);
  if (at == MAP_FAILED) {
    return errno == EEXIST ? address_taken(path(), {address, address + size_bytes})
                           : FailedCall{errno, "cannot map " + path()};
  }
  PAWL_ASSERT(at == wanted);
  header_ = static_cast<Header*>(at);
  mapped_bytes_ = size_bytes;
  ::munlock(at, size_bytes);  // which a sandbox may refuse: only then is it filled
  if (memory::protect(at, size_bytes, PROT_READ | PROT_WRITE) != 0)
    return FailedCall{errno, "cannot map " + path()};
  // A dump of the process's memory would be as large as the file.  A forked child has no part in
  // it: what it stored would be in the file.
  ::madvise(at, size_bytes, MADV_DONTDUMP);
  if (::madvise(at, size_bytes, MADV_DONTFORK) != 0)
    return FailedCall{errno, "cannot keep " + path() + " from forked children"};
  return {};
}

Status File::take_space(std::uint64_t offset, std::uint64_t size_bytes) {
  PAWL_TRY(base_.reserve_for_stores(offset, size_bytes));
  return is_persistent_ ? base_.flush() : Status{};
}

// A copy has holes where nothing was stored yet, or shares its blocks with what it is a copy of: to
// store there takes space, and where there is none the kernel ends the process (SIGBUS).  That is
// left to happen where space cannot be asked for.
Status File::take_space_again(std::uint64_t size_bytes) {
  AreaHeader heap{};
  PAWL_TRY(base_.read(kHeapOffset, std::as_writable_bytes(std::span(&heap, 1))));
  const auto spaces = ChunkTable::spaces_of(heap, size_bytes - kHeapOffset);
  if (!spaces.ok()) return spaces.status();
  std::uint64_t bytes = kSchemeLogsOffset;
  for (const ChunkTable::Space& space : spaces.value()) bytes += space.size_bytes;
  std::uint64_t logs = 0;
  PAWL_TRY(base_.read(offsetof(Header, logs_used), std::as_writable_bytes(std::span(&logs, 1))));
  // Threads' logs of undo and justdo come on top: of all, or of none.
  const std::uint64_t scheme_bytes = std::min<std::uint64_t>(logs, kThreadsMax) * kSchemeLogBytes;
  const std::uint64_t taken = bytes_of_tmpfs(base_.descriptor());
  if (taken == bytes || taken == bytes + scheme_bytes) return {};
  const auto reserve = [&]() -> Status {
    // Where no block is overwritten in place, there is room for what is stored first.
    PAWL_TRY(base_.check_overwrite(kSchemeLogsOffset));
    PAWL_TRY(base_.reserve_holes(0, kSchemeLogsOffset));
    for (const ChunkTable::Space& space : spaces.value())
      PAWL_TRY(base_.reserve_holes(kHeapOffset + space.offset, space.size_bytes));
    return {};
  };
  Status reserved = reserve();
  const int failure = reserved.error_number();
  if (is_want_of_space(failure) || failure == EIO) return reserved;
  return is_persistent_ ? base_.flush() : Status{};
}

BlocksArea File::heap_area() {
  return {.address = address() + kHeapOffset,
          .size_bytes_max = mapped_bytes_ - kHeapOffset,
          .take_space = [this](std::uint64_t offset, std::uint64_t size_bytes) {
            return take_space(kHeapOffset + offset, size_bytes);
          }};
}

Status File::open_blocks() {
  auto blocks = Blocks::open(heap_area(), *memory_);
  if (!blocks.ok()) return blocks.status();
  blocks_ = std::move(blocks.value());
  return {};
}

void File::store_durably(std::uint64_t& word, std::uint64_t value) {
  memory_->store_word(word, value);
  memory_->flush(bytes_of(&word), sizeof word);
  memory_->fence();
}

// No FASE is open, and none has begun.
Status File::begin_run() {
  // The locks of earlier runs are free from now on: so it must never be taken back.
  store_durably(header_->opens, header_->opens + 1);
  lock_word_ = static_cast<std::uint32_t>(header_->opens << kLockStateBits);
  const auto fingerprint = Program::own().fingerprint();
  Fingerprint program{};
  program.size_bytes =
      static_cast<std::uint32_t>(std::min<std::size_t>(fingerprint.size(), program.bytes.size()));
  std::copy_n(fingerprint.begin(), program.size_bytes, program.bytes.begin());
  program.crc32c = crc_of(program);
  memory_->copy(reinterpret_cast<std::byte*>(&header_->program),
                std::as_bytes(std::span(&program, 1)));
  memory_->fence();
  // Before undo's recovery would read them: the lists of other schemes look like its own.
  if (scheme_ == Scheme::undo) {
    undo_dependences_ = std::make_unique<UndoDependences>();
    PAWL_TRY(forget_undo_logs());
  }
  store_durably(header_->scheme.scheme, static_cast<std::uint64_t>(scheme_));
  if (Program::own().has_sections() && header_->scheme.has_sections == 0)
    store_durably(header_->scheme.has_sections, 1);
  // Where the file is in no persistent memory this is all that the kernel can be asked.
  if (!is_persistent_) ::msync(header_, kPageBytes, MS_SYNC);
  return {};
}

Status File::end_run() {
  if (flushes_) return {};
  // What no power failure flushed: the next to open it may be one that flushes, and relies on it.
  if (::msync(header_, mapped_bytes_, MS_SYNC) != 0)
    return FailedCall{errno, "cannot flush " + path()};
  if (!is_unprotected()) return {};
  store_durably(header_->scheme.scheme, static_cast<std::uint64_t>(Scheme::ido));
  if (::msync(header_, kPageBytes, MS_SYNC) != 0)
    return FailedCall{errno, "cannot flush " + path()};
  return {};
}

void File::abandon() {
  if (open_file() == this) become_forked_child();
  base_.close();
  notices_.abandon();
  // The mapping did not come along.
  header_ = nullptr;
}

// ----------------------------------------------------------------------------------------------
// logs

LogArea& File::log(std::uint32_t index) const {
  PAWL_ASSERT(index < kThreadsMax);
  return reinterpret_cast<LogArea*>(reinterpret_cast<std::byte*>(header_) + kLogsOffset)[index];
}

std::byte* File::scheme_log(std::uint32_t index) const {
  PAWL_ASSERT(index < kThreadsMax);
  return reinterpret_cast<std::byte*>(header_) + kSchemeLogsOffset + index * kSchemeLogBytes;
}

UndoArea& File::undo_area(std::uint32_t index) const {
  return *reinterpret_cast<UndoArea*>(scheme_log(index));
}

std::uint32_t File::logs_used() const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(header_->logs_used, kThreadsMax));
}

Result<std::uint32_t> File::take_log() {
  const std::lock_guard lock(logs_mutex_);
  const auto free = std::ranges::find(logs_, false, &LogState::is_taken);
  if (free == logs_.end()) {
    return Status::failure(ENOMEM, PAWL_ERROR_TOO_MANY,
                           "more than " + std::to_string(kThreadsMax) +
                               " threads have used failure-atomic sections and not ended");
  }
  const auto index = static_cast<std::uint32_t>(free - logs_.begin());
  if (scheme_ == Scheme::undo || scheme_ == Scheme::justdo)
    PAWL_TRY(take_space(kSchemeLogsOffset + index * kSchemeLogBytes, kSchemeLogBytes));
  free->is_taken = true;
  if (index >= logs_used()) {
    free->next_number = header_->scheme.undone_below + 1;
    store_durably(header_->logs_used, index + 1);
  }
  return index;
}

void File::give_back_log(std::uint32_t index, std::uint64_t next_number, std::uint8_t end_place) {
  const std::lock_guard lock(logs_mutex_);
  logs_[index] = {.is_taken = false, .next_number = next_number, .end_place = end_place};
}

// ------------------------------------------------------------------------------------------
// recovery

namespace {

// No block is in the lists of two FASEs: else one of them would be given back what the other has.
Status check_lists(std::span<const LogArea* const> areas,
                   std::span<const FoundFrame* const> frames) {
  std::map<std::uint64_t, std::size_t> log_of_block;
  for (std::size_t i = 0; i < areas.size(); ++i) {
    for (std::uint32_t at = 0; at < kBlocksMax; ++at) {
      const BlockEntry& entry = areas[i]->blocks[at];
      if (entry.list != frames[i]->list) continue;
      const auto [known, is_new] = log_of_block.emplace(entry.block & ~kFreedBit, i);
      if (!is_new && known->second != i) {
        return Status::failure(EINVAL, "it names a block that another log names, too, at address " +
                                           std::to_string(known->first));
      }
    }
  }
  return {};
}

// What the FASE did to the heap's maps, if it came so far, is undone: what its frame knows of is
// its own until it ends, and what the frame does not know of will be done again.  `unused` gets the
// blocks that nobody has then.
Status take_blocks_back(LogArea& area, const FoundFrame& frame, Blocks& blocks,
                        std::vector<std::uint64_t>& unused) {
  for (std::uint32_t i = kBlocksMax; i > 0; --i) {
    const BlockEntry& entry = area.blocks[i - 1];
    if (entry.list != frame.list) continue;
    const std::uint64_t block = entry.block & ~kFreedBit;
    const bool was_freed = (entry.block & kFreedBit) != 0;
    // Nobody may have it until all of them are known.
    PAWL_TRY(blocks.keep(block));
    if (was_freed || i - 1 < frame.entries) {
      blocks.set_used(block);
    } else {
      blocks.set_free(block);
      unused.push_back(block);
    }
  }
  for (std::uint32_t i = 0; i < frame.entries; ++i) {
    const std::uint64_t block = area.blocks[i].block;
    if ((block & kFreedBit) != 0) PAWL_TRY(blocks.begin_free(block & ~kFreedBit));
  }
  return {};
}

void forget_entries_behind(LogArea& area, const FoundLog& found, DirectMemory& memory) {
  Log log(area, memory, found.next_number);
  const FoundFrame& frame = found.chain.back();
  for (std::uint32_t i = frame.entries; i < kBlocksMax; ++i) {
    if (area.blocks[i].list == frame.list) log.clear_block(i);
  }
}

}  // namespace

Status check_scheme(std::uint64_t scheme, const std::string& path) {
  if (scheme == static_cast<std::uint64_t>(Scheme::unprotected)) {
    return Status::failure(EUCLEAN, PAWL_ERROR_WAS_UNPROTECTED,
                           path +
                               " was open without protection when its program ended; "
                               "what it holds may be anything: make it anew");
  }
  if (scheme > static_cast<std::uint64_t>(Scheme::unprotected)) {
    return Status::failure(ENOTSUP, PAWL_ERROR_UNSUPPORTED_VERSION,
                           path + " has logs of a scheme that this Pawl does not know");
  }
  return {};
}

Status File::recover() {
  const std::uint64_t scheme = header_->scheme.scheme;
  PAWL_TRY(check_scheme(scheme, path()));
  PAWL_TRY(check_number(header_->scheme.undone_below, path()));
  std::vector<FoundLog> found;
  std::vector<OpenFase> open;
  for (std::uint32_t i = 0; i < logs_used(); ++i) {
    found.push_back(read_log(log(i)));
    PAWL_TRY(check_number(found[i].next_number, path()));
    logs_[i].next_number = found[i].next_number;
    logs_[i].end_place = found[i].end_place;
    if (!found[i].chain.empty()) open.push_back({i, found[i]});
  }
  // Of one scheme at most: a run begins when all FASEs of that before are finished.
  if (scheme == static_cast<std::uint64_t>(Scheme::undo)) return undo_interrupted();
  if (!open.empty()) PAWL_TRY(check_can_finish(open));
  PAWL_TRY(complete_ends(found));
  return open.empty() ? Status{} : finish_interrupted(open);
}

// What ended FASEs free is free, whether they came so far or not.  An end that stays the last of
// its log would be completed again: so it must not be when somebody else has the blocks.  Of a FASE
// that is open now the end takes its place.
Status File::complete_ends(const std::vector<FoundLog>& found) {
  std::vector<std::uint64_t> unused;
  for (const FoundLog& of : found) {
    for (const std::uint64_t block : of.freed) {
      PAWL_TRY(as_damage(blocks_->keep(block), path()));
      blocks_->set_free(block);
      if (of.chain.empty()) unused.push_back(block);
    }
  }
  memory_->fence();
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    if (!found[i].chain.empty() || found[i].freed.empty()) continue;
    Log of(log(i), *memory_, logs_[i].next_number, logs_[i].end_place);
    logs_[i].end_place = of.write({}).place;
    logs_[i].next_number = of.next_number();
  }
  memory_->fence();
  for (const std::uint64_t block : unused) blocks_->give_back(block);
  return {};
}

Status File::check_root() const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
  if (header_->root == 0 || holds(reinterpret_cast<const void*>(header_->root))) return {};
  return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS,
                         path() + " is damaged: its root is not in the file");
}

// A copy: where undo never was there is a hole, and to look at that through the mapping takes
// space, of which there may be none.
Result<std::unique_ptr<UndoArea>> File::read_undo_area(std::uint32_t index) {
  auto area = std::make_unique<UndoArea>();
  PAWL_TRY(base_.read(kSchemeLogsOffset + index * kSchemeLogBytes,
                      std::as_writable_bytes(std::span(area.get(), 1))));
  return area;
}

Status File::undo_interrupted() {
  std::vector<FoundUndo> logs;
  for (std::uint32_t i = 0; i < logs_used(); ++i) {
    const auto area = read_undo_area(i);
    if (!area.ok()) return area.status();
    logs.push_back(read_undo_log(*area.value(), log(i), header_->scheme.undone_below));
  }
  const auto root = reinterpret_cast<std::uint64_t>(&header_->root);
  const std::array<StoredRange, 2> where{
      {{root, root + sizeof header_->root}, {address() + kHeapOffset, address() + mapped_bytes_}}};
  auto undone = fase::undo_interrupted(logs, where, *blocks_, *memory_);
  if (!undone.ok()) return undone.status().prefixed(path() + ": ");
  memory_->fence();
  PAWL_TRY(forget_undo_logs());
  for (const std::uint64_t block : undone.value().unused) blocks_->give_back(block);
  fases_recovered_ = undone.value().fases;
  return {};
}

// One word voids all of them at once: a crash that left some would leave half of what was undone.
Status File::forget_undo_logs() {
  std::uint64_t next = header_->scheme.undone_below;
  for (std::uint32_t i = 0; i < logs_used(); ++i) {
    const auto area = read_undo_area(i);
    if (!area.ok()) return area.status();
    next = std::max({next, logs_[i].next_number, next_undo_number(*area.value())});
  }
  PAWL_TRY(check_number(next, path()));
  store_durably(header_->scheme.undone_below, next);
  for (LogState& of : logs_) of.next_number = next;
  return {};
}

Status File::check_can_finish(const std::vector<OpenFase>& open) const {
  const auto recorded = recorded_fingerprint(*header_);
  if (recorded != Program::own().fingerprint()) {
    return Status::failure(
        ENOEXEC, PAWL_ERROR_OTHER_PROGRAM,
        path() + " has " + std::to_string(open.size()) +
            " sections that a crash interrupted, of the program with build-id " +
            fingerprint_text(recorded) +
            "; only that one can finish them. If you have it still, run 'pawl fase recover "
            "--binary PROGRAM " +
            path() + "', and keep old programs until then");
  }
  for (const OpenFase& fase : open) PAWL_TRY(check_chain(fase.found.chain));
  return {};
}

namespace {

// Each in a thread: one may wait for a lock of another.  When there is a thread too few, nothing
// has happened.
Status run_side_by_side(const std::vector<std::unique_ptr<RecoveredFase>>& fases) {
  std::promise<bool> all_are_there;
  const std::shared_future<bool> may_run = all_are_there.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(fases.size());
  Status status;
  try {
    for (const auto& fase : fases) {
      threads.emplace_back([&fase, may_run] {
        if (may_run.get()) fase->run();
      });
    }
  } catch (const std::system_error& error) {
    status = Status::failure(error.code().value(),
                             "cannot start a thread for each of " + std::to_string(fases.size()) +
                                 " interrupted sections: " + error.code().message() +
                                 "; nothing was changed, open the file again when there are more");
  }
  all_are_there.set_value(status.ok());
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace

Status File::finish_interrupted(const std::vector<OpenFase>& open) {
  std::vector<const LogArea*> areas;
  std::vector<const FoundFrame*> frames;
  for (const OpenFase& fase : open) {
    areas.push_back(&log(fase.log));
    frames.push_back(&fase.found.chain.back());
  }
  PAWL_TRY(as_damage(check_lists(areas, frames), path()));
  std::vector<std::uint64_t> unused;
  for (const OpenFase& fase : open) {
    PAWL_TRY(as_damage(take_blocks_back(log(fase.log), fase.found.chain.back(), *blocks_, unused),
                       path()));
  }
  memory_->fence();
  // Only then: what was taken back once may be another FASE's the next time.
  for (const OpenFase& fase : open) forget_entries_behind(log(fase.log), fase.found, *memory_);
  memory_->fence();
  for (const std::uint64_t block : unused) blocks_->give_back(block);

  RecoveryLocks locks;
  std::vector<std::unique_ptr<RecoveredFase>> fases;
  for (const OpenFase& fase : open) {
    fases.push_back(std::make_unique<RecoveredFase>(*this, fase.log, fase.found, locks));
    logs_[fase.log].is_taken = true;
  }
  // All of them before the first goes on.
  const bool is_one_by_one = is_broken(Law::all_locks_first);
  for (const auto& fase : fases) {
    PAWL_TRY(fase->retake_locks());
    if (is_one_by_one) fase->run();
  }
  if (!is_one_by_one) PAWL_TRY(run_side_by_side(fases));

  std::size_t failed = 0;
  std::string why;
  for (const auto& fase : fases) {
    if (fase->outcome().ok()) continue;
    ++failed;
    if (why.empty()) why = fase->where() + ": " + fase->outcome().text();
  }
  fases_recovered_ = fases.size() - failed;
  if (failed == 0) return {};
  return Status::failure(ENOTRECOVERABLE, PAWL_ERROR_SECTIONS_UNFINISHED,
                         path() + ": " + std::to_string(failed) + " of " +
                             std::to_string(fases.size()) +
                             " interrupted sections could not be finished; " + why);
}

}  // namespace pawl::fase
