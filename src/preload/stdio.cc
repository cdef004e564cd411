// stdio streams read and write from within the C library, past the face: a file is a stream or a
// Pawl mapping, not both.
#include "preload/interpose.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/named_files.h"
#include "preload/other_writers.h"
#include "preload/parents_files.h"
#include "preload/patterns.h"
#include "preload/read_snapshots.h"
#include "preload/real.h"
#include "preload/stdio_descriptors.h"

namespace pawl::preload {
namespace {

std::array<std::atomic<bool>, kDescriptorsMax> beneath_stdio;

constexpr const char* kNothing = "/dev/null";
constexpr const char* kWhy =
    " is mapped atomically in this process, and a stdio stream's writes would bypass that; use "
    "open(), read() and write()";

// The flags of open() where the mode of a stream is one for reading only.
std::optional<int> flags_for_reading(const char* mode) {
  if (mode[0] != 'r' || std::strchr(mode, '+') != nullptr) return std::nullopt;
  return O_RDONLY | (std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);
}

// Those where a file is to be cut that may be there already.  One with a set of characters (`ccs=`)
// is left to the C library, as only fopen() knows it.
std::optional<int> flags_for_cutting(const char* mode) {
  if (mode[0] != 'w' || std::strpbrk(mode, "x,") != nullptr) return std::nullopt;
  return (std::strchr(mode, '+') != nullptr ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC |
         (std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);
}

// What must hold before a stream is opened on the path.
Status may_be_a_stream(const char* path, bool is_only_read) {
  const auto found = look_up(AT_FDCWD, path, true);
  if (!found.ok()) return found.status();
  const auto& named = found.value();
  if (!named) return {};
  const dev_t device = named->status.st_dev;
  const ino_t inode = named->status.st_ino;
  const auto present = table::of_inode(device, inode);
  // Another thread may be about to close it: that is waited for.
  if (present != nullptr && (is_suspended_here(*present) || hold_inode(device, inode)))
    return Status::failure(EBUSY, named->real_path + kWhy);
  // Nor can a stream's writes to the file of another writer be refused later.
  if (!is_only_read) {
    if (Status left = recover_if_left(*named); is_in_use(left)) return left;
  }
  return recover_before_use(*named, is_only_read);
}

// For a descriptor that is known as a stream's already: whoever maps its file from now on sees
// that.
Status check_not_tracked(int descriptor) {
  if (table::is_empty()) return {};
  const Inside working;
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  // Another thread that maps it just now may be refused that.
  const Held file = hold_inode(status.st_dev, status.st_ino);
  return file ? Status::failure(EBUSY, file->path + kWhy) : Status{};
}

int close_stream(const char* call, FILE* stream) {
  const int descriptor = fileno(stream);
  set_may_have_other_writer(descriptor, false);
  if (!can_be_tracked(descriptor)) {
    set_stdio(descriptor, false);
    return real().fclose(stream);
  }
  const Inside working;
  const Status ended = let_go(descriptor);
  const int outcome = real().fclose(stream);
  forget_if_closed(descriptor);
  if (ended.ok()) return outcome;
  refuse(call, ended);
  return EOF;
}

FILE* refused(const char* call, const Status& status) {
  refuse(call, status);
  return nullptr;
}

// Another thread may have mapped the file since it was looked at.
FILE* remember(const char* call, FILE* stream) {
  if (stream == nullptr) return nullptr;
  if (stream == stderr) adopt_standard_error();
  set_stdio(fileno(stream), true);
  const Status free = check_not_tracked(fileno(stream));
  if (free.ok()) return stream;
  close_stream(call, stream);
  return refused(call, free);
}

// The copy that a stream is to read, if another process commits to the file; -1: the file itself.
Result<int> copy_for_stream(const char* path, const char* mode) {
  const auto flags = flags_for_reading(mode);  // the program's memory: not inside
  const Inside working;
  PAWL_TRY(may_be_a_stream(path, flags.has_value()));
  if (!flags) return -1;
  return open_committed([path] { return look_up(AT_FDCWD, path, true); }, *flags);
}

// What a stream is to be of, opened already: that copy; or the file, where it is to be cut, which
// open() does only to one that nobody else writes.  -1: nothing is, and the C library opens it.
// Empty: the call is refused.
std::optional<int> open_for_stream(const char* call, const char* path, const char* mode) {
  constexpr mode_t kModeOfStreams = 0666;
  const auto copy = copy_for_stream(path, mode);
  if (!copy.ok()) {
    refuse(call, copy.status());
    return std::nullopt;
  }
  const auto flags = flags_for_cutting(mode);
  if (!flags) return copy.value();
  const int opened = open_file(AT_FDCWD, path, *flags, kModeOfStreams);
  return opened < 0 ? std::nullopt : std::optional(opened);
}

// What that opened.
void close_again(int descriptor) {
  set_may_have_other_writer(descriptor, false);
  if (const Status ended = let_go(descriptor); !ended.ok()) say("close", ended.text());
  real().close(descriptor);
  forget_if_closed(descriptor);
}

// Whether the name, which was looked at before the file was opened, has led to one that another
// process has mapped.
bool has_come_to_be_written(int descriptor, bool is_only_read) {
  const Inside working;
  if (is_only_read && !has_patterns()) return false;
  const auto file = identify(descriptor);
  if (!file.ok() || !S_ISREG(file.value().status.st_mode)) return false;
  if (is_only_read) return is_written_elsewhere(file.value());
  const auto written = has_other_writer(file.value());
  return written.ok() && written.value();
}

// The file itself may be a pipe, and be waited for: not inside.
FILE* open_stream(const char* path, const char* mode) {
  for (int attempt = 0; attempt < kNameAttemptsMax; ++attempt) {
    const auto opened = open_for_stream("fopen", path, mode);
    if (!opened) return nullptr;
    if (*opened >= 0) {
      FILE* const stream = real().fdopen(*opened, mode);
      if (stream == nullptr) close_again(*opened);
      return stream;
    }
    FILE* const stream = real().fopen(path, mode);
    const bool is_only_read = flags_for_reading(mode).has_value();
    if (stream == nullptr || !has_come_to_be_written(fileno(stream), is_only_read)) return stream;
    real().fclose(stream);
  }
  return refused("fopen", leads_elsewhere_each_time());
}

FILE* open_stream_again(const char* path, const char* mode, FILE* stream) {
  auto opened = open_for_stream("freopen", path, mode);
  if (!opened) {
    const int error_number = errno;
    real().fclose(stream);  // freopen() closes the old stream whatever becomes of the new one
    errno = error_number;
    return nullptr;
  }
  // What the stream has is exchanged beneath it; a chroot may have nothing to open for that.
  if (*opened >= 0 && flags_for_cutting(mode) && faccessat(AT_FDCWD, kNothing, W_OK, 0) != 0) {
    close_again(*opened);
    opened = -1;
  }
  if (*opened < 0) {
    FILE* const itself = real().freopen(path, mode, stream);
    const bool is_only_read = flags_for_reading(mode).has_value();
    if (itself == nullptr || !has_come_to_be_written(fileno(itself), is_only_read)) return itself;
    real().fclose(itself);
    return refused("freopen", leads_elsewhere_each_time());
  }
  FILE* again = real().freopen(kNothing, mode, stream);
  const int flags = std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0;
  if (again != nullptr && real().dup3(*opened, fileno(again), flags) < 0) {
    const FailedCall failed{errno, std::string("cannot open ") + path};
    real().fclose(again);
    again = refused("freopen", failed);
  }
  close_again(*opened);
  return again;
}

bool is_ours_to_judge() { return !inside() && in_own_process(); }

bool is_parents_to_write(const char* call, const char* path, const char* mode) {
  return !in_own_process() && path != nullptr && !flags_for_reading(mode) &&
         refuse_parents_file(call, AT_FDCWD, path, 0) != 0;
}

}  // namespace

bool is_stdio(int descriptor) {
  return descriptor >= 0 && descriptor < kDescriptorsMax &&
         beneath_stdio[static_cast<std::size_t>(descriptor)].load(std::memory_order_relaxed);
}

void set_stdio(int descriptor, bool value) {
  if (descriptor < 0 || descriptor >= kDescriptorsMax) return;
  auto& flag = beneath_stdio[static_cast<std::size_t>(descriptor)];
  if (flag.load(std::memory_order_relaxed) != value) flag.store(value);
}

bool has_stream(int number) {
  if (is_stdio(number)) return true;
  const int error_number = errno;
  bool is_standard = false;
  for (FILE* const stream : {stdin, stdout, stderr})
    is_standard = is_standard || (stream != nullptr && number >= 0 && fileno(stream) == number);
  errno = error_number;
  return is_standard;
}

// The standard streams are there from the start.
__attribute__((constructor)) void know_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status{};
    if (real().fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
      set_stdio(descriptor, true);
  }
}

PAWL_INTERPOSE FILE* fopen(const char* path, const char* mode) try {
  PAWL_PASS(real().fopen(path, mode));
  if (is_parents_to_write("fopen", path, mode)) PAWL_RETURN(nullptr);
  if (!is_ours_to_judge()) PAWL_RETURN(real().fopen(path, mode));
  PAWL_RETURN(remember("fopen", open_stream(path, mode)));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(fopen64, fopen);

PAWL_INTERPOSE FILE* fdopen(int descriptor, const char* mode) noexcept try {
  PAWL_KEEP_ERRNO();
  if (!is_ours_to_judge()) PAWL_RETURN(real().fdopen(descriptor, mode));
  if (!flags_for_reading(mode) && refuse_beside_other_writer("fdopen", descriptor) != 0)
    PAWL_RETURN(nullptr);
  const bool was_stdio = is_stdio(descriptor);
  set_stdio(descriptor, true);
  const Status free = check_not_tracked(descriptor);
  FILE* const stream = free.ok() ? real().fdopen(descriptor, mode) : refused("fdopen", free);
  if (stream == nullptr) set_stdio(descriptor, was_stdio);
  PAWL_RETURN(stream);
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE FILE* freopen(const char* path, const char* mode, FILE* stream) try {
  PAWL_KEEP_ERRNO();
  if (is_parents_to_write("freopen", path, mode)) {
    real().fclose(stream);
    errno = EPERM;
    PAWL_RETURN(nullptr);
  }
  if (!is_ours_to_judge()) PAWL_RETURN(real().freopen(path, mode, stream));
  // Behind its back the C library gives the number to the file that is opened.
  const int number = fileno(stream);
  if (const Status ended = let_go(number); !ended.ok()) say("freopen", ended.text());
  FILE* const again = path != nullptr ? open_stream_again(path, mode, stream)
                                      : real().freopen(nullptr, mode, stream);
  forget_if_closed(number);
  PAWL_RETURN(remember("freopen", again));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(freopen64, freopen);

PAWL_INTERPOSE int fclose(FILE* stream) try {
  PAWL_PASS(real().fclose(stream));
  if (!is_ours_to_judge() || stream == nullptr) PAWL_RETURN(real().fclose(stream));
  PAWL_RETURN(close_stream("fclose", stream));
}
PAWL_OR_NO_MEMORY

}  // namespace pawl::preload
