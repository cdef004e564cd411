#include "preload/started_programs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>

#include "medium/program_file.h"
#include "preload/messages.h"
#include "preload/patterns.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

// Programs that were named, so that each is once.
constexpr std::size_t kNamedProgramsMax = 16;
using NamedPrograms = std::array<std::atomic<std::uint64_t>, kNamedProgramsMax>;

// Shared with children, which a shell forks for each program.
NamedPrograms* named_programs = nullptr;
NamedPrograms named_alone{};  // where there is no memory to share

NamedPrograms& named() { return named_programs != nullptr ? *named_programs : named_alone; }

bool may_name() { return has_patterns() && named().back().load() == 0; }

bool is_first_time(const struct stat& status) {
  const std::uint64_t key = (std::uint64_t{status.st_dev} << 40U) ^ status.st_ino;
  for (std::atomic<std::uint64_t>& one : named()) {
    std::uint64_t present = 0;
    if (one.compare_exchange_strong(present, key)) return true;
    if (present == key) return false;
  }
  return false;
}

void name_unprotected(std::string_view program, const struct stat& status, Obstacle obstacle) {
  if (text_of(obstacle).empty() || !is_first_time(status)) return;
  char text[kMessageBytesMax];
  std::size_t length = 0;
  for (const std::string_view part :
       {program, text_of(obstacle), std::string_view(". It is started without Pawl")})
    length += part.copy(text + length, sizeof(text) - length);
  say("exec", {text, length});
}

// -1: it is no program, or none that we may read.
int open_program(int directory, const char* path) {
  struct stat status{};
  if (real().fstatat(directory, path, &status, 0) != 0 || !S_ISREG(status.st_mode)) return -1;
  if (::faccessat(directory, path, X_OK, AT_EACCESS) != 0) return -1;
  return real().openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

// The interpreter that a script names; empty where the file is none, and is named if need be.
std::string_view look_into(int descriptor, std::string_view shown,
                           char (&interpreter)[kFirstLineMax]) {
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0) return {};
  const FirstLine start(descriptor);
  const std::string_view name = interpreter_of(start.text());
  if (name.empty()) {
    name_unprotected(shown, status, obstacle_to_preloading(descriptor, status));
    return {};
  }
  interpreter[name.copy(interpreter, kFirstLineMax - 1)] = '\0';
  return interpreter;
}

// Follows '#!' lines.
void look_at(int descriptor, std::string_view shown) {
  char interpreter[kFirstLineMax];
  std::string_view next = look_into(descriptor, shown, interpreter);
  for (int depth = 0; depth < kInterpretersMax && !next.empty(); ++depth) {
    const int opened = open_program(AT_FDCWD, interpreter);
    if (opened < 0) return;
    next = look_into(opened, next, interpreter);
    real().close(opened);
  }
}

}  // namespace

void prepare_to_name_programs() {
  if (!has_patterns()) return;
  void* const memory = real().mmap(nullptr, sizeof(NamedPrograms), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) named_programs = new (memory) NamedPrograms{};
}

void name_if_unprotected(int directory, const char* path, int flags) noexcept {
  if (path == nullptr || !may_name()) return;
  if (*path == '\0' && (flags & AT_EMPTY_PATH) != 0) return name_if_unprotected(directory);
  const int error_number = errno;
  const int descriptor = open_program(directory, path);
  if (descriptor >= 0) {
    look_at(descriptor, path);
    real().close(descriptor);
  }
  errno = error_number;
}

void name_if_unprotected(int descriptor) noexcept {
  if (!may_name()) return;
  const int error_number = errno;
  look_at(descriptor, "the program that is started by its descriptor");
  errno = error_number;
}

void name_if_unprotected_in_path(const char* name) noexcept {
  if (name == nullptr || !may_name()) return;
  if (std::string_view(name).find('/') != std::string_view::npos)
    return name_if_unprotected(AT_FDCWD, name);
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/bin:/usr/bin";
  const int error_number = errno;
  char path[PATH_MAX];
  while (true) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    std::size_t length = 0;
    for (const std::string_view part :
         {directory, std::string_view(directory.empty() ? "" : "/"), std::string_view(name)})
      length += part.copy(path + length, sizeof(path) - 1 - length);
    path[length] = '\0';
    if (::faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0) break;
    if (directory.size() == rest.size()) return void(errno = error_number);
    rest.remove_prefix(directory.size() + 1);
  }
  errno = error_number;
  name_if_unprotected(AT_FDCWD, path);
}

}  // namespace pawl::preload
