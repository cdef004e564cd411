// stdio streams read and write from within the C library, past the face: a file is a stream or a
// Pawl mapping, not both.
#include "preload/interpose.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/named_files.h"
#include "preload/read_snapshots.h"
#include "preload/real.h"
#include "preload/stdio_descriptors.h"

namespace pawl::preload {
namespace {

std::array<std::atomic<bool>, kDescriptorsMax> beneath_stdio;

constexpr const char* kWhy =
    " is mapped atomically in this process, and a stdio stream's writes would bypass that; use "
    "open(), read() and write()";

// The flags of open() where the mode of a stream is one for reading only.
std::optional<int> flags_for_reading(const char* mode) {
  if (mode[0] != 'r' || std::strchr(mode, '+') != nullptr) return std::nullopt;
  return O_RDONLY | (std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);
}

// What must hold before a stream is opened on the path.
Status may_be_a_stream(const char* path, const char* mode) {
  const auto named = look_up(AT_FDCWD, path, true);
  if (!named) return {};
  if (table::of_inode(named->status.st_dev, named->status.st_ino) != nullptr) {
    return Status::failure(EBUSY, named->real_path + kWhy);
  }
  return recover_before_use(*named, flags_for_reading(mode).has_value());
}

FILE* remember(FILE* stream) {
  if (stream != nullptr) set_stdio(fileno(stream), true);
  return stream;
}

// Once the stream is there: what it reads is the copy, if another process commits to the file.
Status show_committed_to(FILE* stream, const char* path, const char* mode) {
  const auto flags = flags_for_reading(mode);
  if (stream == nullptr || !flags) return {};
  const auto named = look_up(AT_FDCWD, path, true);
  return named ? show_committed(fileno(stream), *named, *flags) : Status{};
}

bool is_ours_to_judge() { return !inside() && in_own_process(); }

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

PAWL_INTERPOSE FILE* fopen(const char* path, const char* mode) {
  PAWL_PASS(real().fopen(path, mode));
  if (!is_ours_to_judge()) PAWL_RETURN(real().fopen(path, mode));
  {
    const Inside working;
    if (const Status status = may_be_a_stream(path, mode); !status.ok()) {
      refuse("fopen", status);
      PAWL_RETURN(nullptr);
    }
  }
  FILE* const stream = real().fopen(path, mode);
  {
    const Inside working;
    if (const Status status = show_committed_to(stream, path, mode); !status.ok()) {
      real().fclose(stream);
      refuse("fopen", status);
      PAWL_RETURN(nullptr);
    }
  }
  PAWL_RETURN(remember(stream));
}
PAWL_ALSO_KNOWN_AS(fopen64, fopen);

PAWL_INTERPOSE FILE* fdopen(int descriptor, const char* mode) noexcept {
  PAWL_KEEP_ERRNO();
  if (!is_ours_to_judge()) PAWL_RETURN(real().fdopen(descriptor, mode));
  if (table::may_be_tracked(descriptor)) {
    refuse("fdopen", EBUSY, std::string("the descriptor's file") + kWhy);
    PAWL_RETURN(nullptr);
  }
  PAWL_RETURN(remember(real().fdopen(descriptor, mode)));
}

PAWL_INTERPOSE FILE* freopen(const char* path, const char* mode, FILE* stream) {
  PAWL_KEEP_ERRNO();
  if (!is_ours_to_judge()) PAWL_RETURN(real().freopen(path, mode, stream));
  if (path != nullptr) {
    const Inside working;
    if (const Status status = may_be_a_stream(path, mode); !status.ok()) {
      real().fclose(stream);  // freopen() closes the old stream whatever becomes of the new one
      refuse("freopen", status);
      PAWL_RETURN(nullptr);
    }
  }
  set_stdio(fileno(stream), false);
  FILE* const opened = real().freopen(path, mode, stream);
  if (path != nullptr) {
    const Inside working;
    if (const Status status = show_committed_to(opened, path, mode); !status.ok()) {
      real().fclose(opened);
      refuse("freopen", status);
      PAWL_RETURN(nullptr);
    }
  }
  PAWL_RETURN(remember(opened));
}
PAWL_ALSO_KNOWN_AS(freopen64, freopen);

PAWL_INTERPOSE int fclose(FILE* stream) {
  PAWL_PASS(real().fclose(stream));
  if (!is_ours_to_judge() || stream == nullptr) PAWL_RETURN(real().fclose(stream));
  const Closing closing(fileno(stream));
  set_stdio(fileno(stream), false);
  PAWL_RETURN(real().fclose(stream));
}

}  // namespace pawl::preload
