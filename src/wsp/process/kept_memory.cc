#include "wsp/process/kept_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "medium/checksum.h"
#include "wsp/clock.h"
#include "wsp/directory/whose.h"
#include "wsp/process/image.h"
#include "wsp/process/layout.h"

namespace pawl::wsp {

namespace {

constexpr char kMemoryMagic[8] = {'P', 'A', 'W', 'L', 'W', 'S', 'P', 'M'};
constexpr std::uint32_t kMemoryVersion = 1;
constexpr const char* kMemoryFile = "memory";
// Of a start, until the program is about to run.
constexpr const char* kNewMemoryFile = "memory.new";
constexpr const char* kNewImageFile = "image.new";
constexpr std::size_t kCopyBytes = 1ULL << 20;

Status failed(const std::string& what) { return FailedCall{errno, what}; }

bool is_in_surviving_memory(int file) {
  struct statfs system{};
  if (::fstatfs(file, &system) != 0) return false;
  if (system.f_type == TMPFS_MAGIC) return true;
  void* const place =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, file, 0);
  if (place == MAP_FAILED) return false;
  ::munmap(place, kPageBytes);
  return true;
}

Status nothing_kept(const std::string& directory) {
  return Status::failure(ENOENT, directory + ": no program was ever kept here");
}

// As a start leaves it that did not come far, an empty memory file is none.
bool holds_something(const OwnDirectory& directory) {
  struct stat memory{};
  return directory.has(kProgramImageFile) ||
         (::fstatat(directory.descriptor(), kMemoryFile, &memory, AT_SYMLINK_NOFOLLOW) == 0 &&
          memory.st_size != 0);
}

// A signal would end whoever writes beyond it.
Status check_size_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur >= kMemoryFileBytes) return {};
  return Status::failure(EFBIG,
                         fmt::format("files may not be longer than {} bytes here, and the memory "
                                     "file is 128 TiB long, most of it holes; start without that "
                                     "limit: ulimit -f unlimited",
                                     limit.rlim_cur));
}

// Who only looks (`check`) is done soon, and waited for; who runs a program is not.
Status take_lock(const Descriptor& file, const std::string& directory, KeptMemory::Use use) {
  constexpr int kLookMsMax = 10'000;
  constexpr timespec kPause{0, 1'000'000};
  const int wanted = use == KeptMemory::Use::to_look ? LOCK_SH : LOCK_EX;
  const Deadline deadline(kLookMsMax);
  while (::flock(file.get(), wanted | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("cannot lock " + directory);
    const bool others_look = ::flock(file.get(), LOCK_SH | LOCK_NB) == 0;
    if (!others_look || deadline.passed())
      return Status::failure(EBUSY, directory + " is in use: a program runs in it");
    ::flock(file.get(), LOCK_UN);
    ::nanosleep(&kPause, nullptr);
  }
  return {};
}

// Half of it may be a save whose other half is to be had still.
Status half_kept(const std::string& missing) {
  return Status::failure(EINVAL, missing +
                                     " is not there, but the rest of what was kept is; bring it "
                                     "back, or remove the rest");
}

}  // namespace

struct KeptMemory::Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t checksum;  // of the generation
  std::uint64_t generation;
};

KeptMemory::KeptMemory(KeptMemory&& other) noexcept
    : hurry_(std::move(other.hurry_)),
      directory_(std::move(other.directory_)),
      lock_(std::move(other.lock_)),
      memory_(std::move(other.memory_)),
      image_file_(std::move(other.image_file_)),
      device_(other.device_),
      inode_(other.inode_),
      image_(std::exchange(other.image_, nullptr)),
      is_beside_(std::exchange(other.is_beside_, false)),
      generation_(other.generation_) {}

KeptMemory::~KeptMemory() {
  unmap_image();
  if (!is_beside_) return;
  for (const char* const name : {kNewImageFile, kNewMemoryFile})
    ::unlinkat(directory_.descriptor(), name, 0);
}

Result<KeptMemory> KeptMemory::take(const std::string& directory, bool makes, Use use) {
  if (use == Use::alone) PAWL_TRY(check_size_limit());
  Result<OwnDirectory> own = OwnDirectory::open(directory, makes);
  if (!own.ok()) {
    if (own.status().error_number() == ENOENT && !makes) return nothing_kept(directory);
    return own.status();
  }
  PAWL_TRY(refuse_a_machines(own.value()));
  KeptMemory taken(std::move(own.value()));
  // The lock is an empty file, which tools that clean up remove: the other files show whether there
  // is a save.
  if (!makes && !holds_something(taken.directory_)) return nothing_kept(directory);
  Result<Descriptor> lock = taken.directory_.open_file("lock", O_RDWR | O_CREAT);
  if (!lock.ok()) return lock.status();
  taken.lock_ = std::move(lock.value());
  PAWL_TRY(take_lock(taken.lock_, directory, use));
  return taken;
}

Status KeptMemory::open_files(Use use) {
  const std::string& directory = directory_.path();
  Result<Descriptor> memory = directory_.open_file(kMemoryFile, O_RDWR | O_LARGEFILE);
  Result<Descriptor> image = directory_.open_file(kProgramImageFile, O_RDWR);
  for (const Result<Descriptor>* opened : {&memory, &image}) {
    if (opened->status().error_number() != ENOENT) PAWL_TRY(opened->status());
  }
  if (!memory.ok()) return half_kept(directory_.path_of(kMemoryFile));
  if (!image.ok()) return half_kept(directory_.path_of(kProgramImageFile));
  memory_ = std::move(memory.value());
  image_file_ = std::move(image.value());
  // Whoever removed the lock of a program that runs has not removed this one.
  PAWL_TRY(take_lock(image_file_, directory, use));
  PAWL_TRY(identify_memory());
  // As a start leaves it that did not come far.
  const bool is_empty = !has_marker(image_file_.get());
  struct stat image_facts{};
  struct stat memory_facts{};
  if (::fstat(image_file_.get(), &image_facts) != 0 || image_facts.st_size != kImageBytes ||
      ::fstat(memory_.get(), &memory_facts) != 0 ||
      static_cast<std::uint64_t>(memory_facts.st_size) != kMemoryFileBytes) {
    if (is_empty) return nothing_kept(directory);
    return Status::failure(EINVAL, directory +
                                       ": its files are not as long as they must be; start "
                                       "the program anew");
  }
  PAWL_TRY(map_image());
  Header header{};
  if (::pread(memory_.get(), &header, sizeof(header), 0) != sizeof(header) ||
      std::memcmp(header.magic, kMemoryMagic, sizeof(kMemoryMagic)) != 0 ||
      header.version != kMemoryVersion ||
      header.checksum != checksum(&header.generation, sizeof(header.generation))) {
    if (is_empty) return nothing_kept(directory);
    return Status::failure(EINVAL, directory +
                                       "/memory: its first page is not one of Pawl's, or of "
                                       "another version; start the program anew");
  }
  generation_ = header.generation;
  return {};
}

Status KeptMemory::identify_memory() {
  struct stat facts{};
  if (::fstat(memory_.get(), &facts) != 0) return failed("cannot look at " + directory_.path());
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  return {};
}

void KeptMemory::unmap_image() {
  if (image_ != nullptr) ::munmap(image_, kImageBytes);
  image_ = nullptr;
}

Status KeptMemory::map_image() {
  void* const image = ::mmap(nullptr, kImageBytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_POPULATE, image_file_.get(), 0);
  if (image == MAP_FAILED) return failed("cannot map " + directory_.path() + "/image");
  image_ = static_cast<std::byte*>(image);
  // No child needs it, and one that a server holds must not hold the lock, too.
  ::madvise(image_, kImageBytes, MADV_DONTFORK);
  return {};
}

// By calls and not by a mapping: the program has this file, and may cut it.
Status KeptMemory::write_generation(std::uint64_t generation) {
  Header header{};
  std::memcpy(header.magic, kMemoryMagic, sizeof(kMemoryMagic));
  header.version = kMemoryVersion;
  header.checksum = checksum(&generation, sizeof(generation));
  header.generation = generation;
  if (::pwrite(memory_.get(), &header, sizeof(header), 0) != sizeof(header) ||
      ::fdatasync(memory_.get()) != 0)
    return failed("cannot write " + directory_.path() + "/memory");
  generation_ = generation;
  return {};
}

Result<KeptMemory> KeptMemory::create(const std::string& directory, const JudgeEarlier& judge) {
  Result<KeptMemory> taken = take(directory, true, Use::alone);
  if (!taken.ok()) return taken;
  KeptMemory& made = taken.value();
  if (holds_something(made.directory_)) PAWL_TRY(made.give_way(judge));
  // Not the files of an earlier program, which others may have from that one: it may have had fewer
  // rights than this one begins with.
  made.is_beside_ = true;
  Result<Descriptor> image = made.directory_.make_file(kNewImageFile);
  if (!image.ok()) return image.status();
  made.image_file_ = std::move(image.value());
  PAWL_TRY(take_lock(made.image_file_, directory, Use::alone));
  Result<Descriptor> memory = made.directory_.make_file(kNewMemoryFile);
  if (!memory.ok()) return memory.status();
  made.memory_ = std::move(memory.value());
  PAWL_TRY(made.identify_memory());
  const std::string no_image = "cannot reserve the image in " + directory;
  if (::ftruncate(made.image_file_.get(), kImageBytes) != 0) return failed(no_image);
  if (const int error_number = ::posix_fallocate(made.image_file_.get(), 0, kImageBytes);
      error_number != 0)
    return FailedCall{error_number, no_image};
  if (::ftruncate(made.memory_.get(), static_cast<off_t>(kMemoryFileBytes)) != 0) {
    return Status::failure(EOPNOTSUPP,
                           directory +
                               ": its file system takes no file of 128 TiB, most of it holes, as "
                               "the memory is kept in; take one on tmpfs, or on XFS with DAX");
  }
  if (!is_in_surviving_memory(made.memory_.get())) {
    return Status::failure(EOPNOTSUPP, directory +
                                           ": not in memory that survives; take a directory on "
                                           "tmpfs (/dev/shm), or on XFS with DAX");
  }
  PAWL_TRY(made.map_image());
  std::uint64_t generation = 0;
  if (::getrandom(&generation, sizeof(generation), 0) != sizeof(generation))
    return failed("cannot get random bytes");
  PAWL_TRY(made.write_generation(generation));
  return taken;
}

Status KeptMemory::give_way(const JudgeEarlier& judge) {
  Status opened = open_files(Use::alone);
  for (const int is_not_ours : {EBUSY, EPERM, EACCES}) {
    if (opened.error_number() == is_not_ours) return opened;
  }
  const Result<bool> is_no_save = judge(opened, *this);
  if (!is_no_save.ok()) return is_no_save.status();
  unmap_image();
  // Nobody misses what is no save, and its space is needed.
  for (const Descriptor* file : {&image_file_, &memory_}) {
    if (is_no_save.value() && file->valid() && ::ftruncate(file->get(), 0) != 0)
      return failed("cannot empty " + directory_.path());
  }
  return {};
}

Result<KeptMemory> KeptMemory::open(const std::string& directory, Use use) {
  Result<KeptMemory> taken = take(directory, false, use);
  if (taken.ok()) PAWL_TRY(taken.value().open_files(use));
  return taken;
}

Status KeptMemory::take_place() {
  const int holding = directory_.descriptor();
  // The image first: without its marker what was saved is not believed any more.
  if (::renameat(holding, kNewImageFile, holding, kProgramImageFile) != 0 ||
      ::renameat(holding, kNewMemoryFile, holding, kMemoryFile) != 0)
    return failed("cannot replace what lies in " + directory_.path());
  is_beside_ = false;
  return {};
}

Status KeptMemory::check_names() const {
  const std::pair<const char*, int> files[] = {{kProgramImageFile, image_file_.get()},
                                               {kMemoryFile, memory_.get()}};
  for (const auto& [name, file] : files) {
    struct stat open_file{};
    struct stat named{};
    if (::fstat(file, &open_file) != 0) return failed("cannot look at " + directory_.path());
    if (::fstatat(directory_.descriptor(), name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_dev == open_file.st_dev && named.st_ino == open_file.st_ino)
      continue;
    return Status::failure(
        ENOENT, directory_.path_of(name) +
                    " was removed or replaced while the program runs, and what is saved would have "
                    "no name; it cannot be kept any more: start the program anew in a directory "
                    "that nobody cleans up");
  }
  return {};
}

Status KeptMemory::begin_generation() { return write_generation(generation_ + 1); }

Status KeptMemory::punch(std::uint64_t address, std::uint64_t bytes) const {
  if (::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(address), static_cast<off_t>(bytes)) != 0)
    return failed("cannot give memory back");
  return {};
}

Status KeptMemory::reserve(std::uint64_t address, std::uint64_t bytes) const {
  while (bytes > 0) {
    PAWL_TRY(must_go_on());
    const std::uint64_t piece = std::min<std::uint64_t>(bytes, kCopyBytes);
    if (::fallocate(memory_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address),
                    static_cast<off_t>(piece)) != 0)
      return failed("there is no room in " + directory_.path());
    address += piece;
    bytes -= piece;
  }
  return {};
}

// What another thread of the program stores there for the first time meanwhile may be lost: it
// stores to where this one is mapping something else.
Status KeptMemory::give_back_room(std::uint64_t address, std::uint64_t bytes) const {
  const std::uint64_t end = address + bytes;
  while (address < end) {
    const off_t hole = ::lseek(memory_.get(), static_cast<off_t>(address), SEEK_HOLE);
    if (hole < 0) return failed("cannot read the memory file");
    const off_t data = ::lseek(memory_.get(), hole, SEEK_DATA);  // fails where none is behind it
    const auto from = static_cast<std::uint64_t>(hole);
    const std::uint64_t until = data < 0 ? end : std::min(end, static_cast<std::uint64_t>(data));
    if (from < until) PAWL_TRY(punch(from, until - from));
    address = std::max(until, from);
  }
  return {};
}

void KeptMemory::give_up_lock() const {
  ::flock(image_file_.get(), LOCK_UN);
  ::flock(lock_.get(), LOCK_UN);
}

bool KeptMemory::is_mounted_noexec() const {
  struct statvfs system{};
  return ::fstatvfs(memory_.get(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0;
}

bool KeptMemory::is_full() const {
  struct statfs system{};
  return ::fstatfs(memory_.get(), &system) == 0 && system.f_bavail == 0;
}

Status KeptMemory::clear() const { return punch(kPageBytes, kMemoryFileBytes - kPageBytes); }

Status KeptMemory::must_go_on() const {
  if (hurry_ && hurry_()) return Status::failure(EINTR, "something else is more urgent");
  return {};
}

Status KeptMemory::copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) const {
  std::vector<std::byte> piece(kCopyBytes);
  const std::uint64_t end = from + bytes;
  std::uint64_t at = from;
  while (at < end) {
    const off_t data = ::lseek(memory_.get(), static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 || static_cast<std::uint64_t>(data) >= end) break;
    at = static_cast<std::uint64_t>(data);
    const off_t hole = ::lseek(memory_.get(), data, SEEK_HOLE);
    const std::uint64_t until = std::min(end, static_cast<std::uint64_t>(hole));
    while (at < until) {
      PAWL_TRY(must_go_on());
      const std::size_t count = std::min<std::uint64_t>(until - at, kCopyBytes);
      const ssize_t got = ::pread(memory_.get(), piece.data(), count, static_cast<off_t>(at));
      if (got <= 0) return failed("cannot read the memory file");
      PAWL_TRY(write(to + (at - from), {piece.data(), static_cast<std::size_t>(got)}));
      at += static_cast<std::uint64_t>(got);
    }
  }
  return {};
}

Status KeptMemory::write(std::uint64_t address, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(address));
    if (put <= 0) return failed("cannot write into the memory file");
    address += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Status KeptMemory::copy_file(int file, std::uint64_t offset, std::uint64_t to,
                             std::uint64_t bytes) const {
  std::vector<std::byte> piece(std::min<std::uint64_t>(bytes, kCopyBytes));
  while (bytes > 0) {
    PAWL_TRY(must_go_on());
    const ssize_t got = ::pread(file, piece.data(), std::min<std::uint64_t>(bytes, piece.size()),
                                static_cast<off_t>(offset));
    if (got < 0) return failed("cannot read a mapped file");
    if (got == 0) return punch(to, bytes);
    const auto count = static_cast<std::uint64_t>(got);
    PAWL_TRY(write(to, {piece.data(), count}));
    offset += count;
    to += count;
    bytes -= count;
  }
  return {};
}

Status KeptMemory::flush_memory() const {
  if (::fdatasync(memory_.get()) != 0)
    return failed("cannot flush " + directory_.path() + "/memory");
  return {};
}

Status KeptMemory::flush_image() const {
  if (::fdatasync(image_file_.get()) != 0)
    return failed("cannot flush " + directory_.path() + "/image");
  return {};
}

}  // namespace pawl::wsp
