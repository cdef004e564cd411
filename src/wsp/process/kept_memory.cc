#include "wsp/process/kept_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "medium/checksum.h"
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
  if (image_ != nullptr) ::munmap(image_, kImageBytes);
  if (!is_beside_) return;
  for (const char* const name : {kNewImageFile, kNewMemoryFile})
    ::unlinkat(directory_.descriptor(), name, 0);
}

Result<KeptMemory> KeptMemory::take(const std::string& directory, int flags) {
  const bool makes = (flags & O_CREAT) != 0;
  Result<OwnDirectory> own = OwnDirectory::open(directory, makes);
  if (!own.ok()) {
    if (own.status().error_number() == ENOENT && !makes) return nothing_kept(directory);
    return own.status();
  }
  PAWL_TRY(refuse_a_machines(own.value()));
  KeptMemory taken(std::move(own.value()));
  const auto open_file = [&](const char* name, Descriptor& into, int more) -> Status {
    Result<Descriptor> file = taken.directory_.open_file(name, O_RDWR | more | flags);
    if (!file.ok()) return file.status();
    into = std::move(file.value());
    return {};
  };
  // The lock is an empty file, which tools that clean up remove: the other files show whether there
  // is a save.
  if (!makes && !holds_something(taken.directory_)) return nothing_kept(directory);
  PAWL_TRY(open_file("lock", taken.lock_, O_CREAT));
  if (::flock(taken.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return Status::failure(EBUSY, directory + " is in use: a program runs in it");
    return failed("cannot lock " + directory);
  }
  const Status memory = open_file(kMemoryFile, taken.memory_, O_LARGEFILE);
  const Status image = open_file(kProgramImageFile, taken.image_file_, 0);
  for (const Status& opened : {memory, image}) {
    if (opened.error_number() != ENOENT) PAWL_TRY(opened);
  }
  if (!memory.ok()) return half_kept(taken.directory_.path_of(kMemoryFile));
  if (!image.ok()) return half_kept(taken.directory_.path_of(kProgramImageFile));
  PAWL_TRY(taken.identify_memory());
  return taken;
}

Status KeptMemory::identify_memory() {
  struct stat facts{};
  if (::fstat(memory_.get(), &facts) != 0) return failed("cannot look at " + directory_.path());
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  return {};
}

Status KeptMemory::map_image() {
  void* const image = ::mmap(nullptr, kImageBytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_POPULATE, image_file_.get(), 0);
  if (image == MAP_FAILED) return failed("cannot map " + directory_.path() + "/image");
  image_ = static_cast<std::byte*>(image);
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

Result<KeptMemory> KeptMemory::create(const std::string& directory, Earlier earlier) {
  Result<KeptMemory> taken = take(directory, O_CREAT);
  if (!taken.ok()) return taken;
  KeptMemory& made = taken.value();
  // Nobody misses it, and its space is needed.
  if (earlier == Earlier::is_no_save &&
      (::ftruncate(made.image_file_.get(), 0) != 0 || ::ftruncate(made.memory_.get(), 0) != 0))
    return failed("cannot empty " + directory);
  // Not the files of an earlier program, which others may have from that one: it may have had fewer
  // rights than this one begins with.
  made.is_beside_ = true;
  Result<Descriptor> image = made.directory_.make_file(kNewImageFile);
  if (!image.ok()) return image.status();
  made.image_file_ = std::move(image.value());
  Result<Descriptor> memory = made.directory_.make_file(kNewMemoryFile);
  if (!memory.ok()) return memory.status();
  made.memory_ = std::move(memory.value());
  PAWL_TRY(made.identify_memory());
  if (::ftruncate(made.image_file_.get(), kImageBytes) != 0 ||
      ::posix_fallocate(made.image_file_.get(), 0, kImageBytes) != 0)
    return failed("cannot reserve the image in " + directory);
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

Result<KeptMemory> KeptMemory::open(const std::string& directory) {
  Result<KeptMemory> taken = take(directory, 0);
  if (!taken.ok()) return taken;
  KeptMemory& opened = taken.value();
  // As a start leaves it that did not come far.
  const bool is_empty = !has_marker(opened.image_file_.get());
  struct stat image{};
  struct stat memory{};
  if (::fstat(opened.image_file_.get(), &image) != 0 || image.st_size != kImageBytes ||
      ::fstat(opened.memory_.get(), &memory) != 0 ||
      static_cast<std::uint64_t>(memory.st_size) != kMemoryFileBytes) {
    if (is_empty) return nothing_kept(directory);
    return Status::failure(EINVAL, directory +
                                       ": its files are not as long as they must be; start "
                                       "the program anew");
  }
  PAWL_TRY(opened.map_image());
  Header header{};
  if (::pread(opened.memory_.get(), &header, sizeof(header), 0) != sizeof(header) ||
      std::memcmp(header.magic, kMemoryMagic, sizeof(kMemoryMagic)) != 0 ||
      header.version != kMemoryVersion ||
      header.checksum != checksum(&header.generation, sizeof(header.generation))) {
    if (is_empty) return nothing_kept(directory);
    return Status::failure(EINVAL, directory +
                                       "/memory: its first page is not one of Pawl's, or of "
                                       "another version; start the program anew");
  }
  opened.generation_ = header.generation;
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
