#include "cli/program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "medium/descriptor.h"
#include "medium/program_file.h"
#include "medium/regular_file.h"

namespace pawl::cli {

namespace {

constexpr const char* kPreloadName = "libpawl-preload.so";

bool is_executable_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  const auto not_executable = [](const std::string& path) {
    return Status::failure(EACCES, path + " is not an executable file");
  };
  if (name.find('/') != std::string::npos) {
    if (is_executable_file(name)) return name;
    if (::access(name.c_str(), F_OK) != 0) {
      return Status::failure(ENOENT, "there is no program " + name);
    }
    return not_executable(name);
  }
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  std::string present;  // found, but not executable
  while (true) {
    const std::size_t colon = rest.find(':');
    std::string directory(rest.substr(0, colon));
    if (directory.empty()) directory = ".";
    const std::string path = directory + "/" + name;
    if (is_executable_file(path)) return path;
    if (present.empty() && ::access(path.c_str(), F_OK) == 0) present = path;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (!present.empty()) return not_executable(present);
  const std::string hint = is_executable_file(name) ? " (write ./" + name + ")" : "";
  return Status::failure(ENOENT,
                         "there is no program " + name + " in the directories of PATH" + hint);
}

ExitCode exit_code_without_program(const Status& failure) {
  return failure.error_number() == ENOENT ? kExitNotFound : kExitCannotRun;
}

Preloadability preloadability_of(const std::string& path, const std::string& shown) {
  std::string current = path;
  std::string name = shown.empty() ? path : shown;  // of `current`, for people
  for (int depth = 0; depth <= kInterpretersMax; ++depth) {
    const Result<Descriptor> opened = open_regular(AT_FDCWD, current, O_RDONLY | O_CLOEXEC, name);
    struct stat status{};
    if (!opened.ok()) {
      // Executable but not readable: the loader would treat it as any other.
      if (opened.status().error_number() == EACCES) return {};
      return {Obstacle::cannot_look, opened.status()};
    }
    const Descriptor& file = opened.value();
    if (::fstat(file.get(), &status) != 0)
      return {Obstacle::cannot_look, FailedCall{errno, "cannot stat " + name}};
    const FirstLine start(file.get());
    const std::string interpreter(interpreter_of(start.text()));
    if (interpreter.empty()) {
      const Obstacle obstacle = obstacle_to_preloading(file.get(), status);
      if (obstacle == Obstacle::none) return {};
      return {obstacle, Status::failure(obstacle == Obstacle::privileges ? EPERM : ENOEXEC,
                                        name + std::string(text_of(obstacle)))};
    }
    current = interpreter;
    name = interpreter;
  }
  return {Obstacle::cannot_look,
          Status::failure(ELOOP, path + " names one interpreter after another")};
}

std::string shell_of(const std::string& path) {
  constexpr std::array<std::string_view, 7> kShells = {"sh",  "bash", "dash",   "ash",
                                                       "ksh", "zsh",  "busybox"};
  const Result<Descriptor> file = open_regular(path, O_RDONLY | O_CLOEXEC);
  if (!file.ok()) return {};
  const FirstLine start(file.value().get());
  std::string_view line = interpreter_line(start.text());
  std::string_view word = take_word(line);
  if (file_name_of(word) == "env") {
    do {
      word = take_word(line);
    } while (word.starts_with('-'));
  }
  const bool is_shell =
      std::find(kShells.begin(), kShells.end(), file_name_of(word)) != kShells.end();
  return is_shell ? std::string(word) : std::string();
}

Status check_preloadable(const std::string& path) { return preloadability_of(path).status; }

Result<std::string> find_preload_library() {
  constexpr std::array<const char*, 6> kPlaces = {
      "", "../lib/", "../lib/x86_64-linux-gnu/", "../lib/aarch64-linux-gnu/", "../lib64/", "lib/"};
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length < 0) return FailedCall{errno, "cannot find the command's own path in /proc"};
  const std::string own(self.data(), static_cast<std::size_t>(length));
  const std::string directory = own.substr(0, own.rfind('/') + 1);
  for (const char* place : kPlaces) {
    std::array<char, PATH_MAX> real{};
    const std::string candidate = directory + place + kPreloadName;
    if (::realpath(candidate.c_str(), real.data()) == nullptr) continue;
    std::string found = real.data();
    if (found.find_first_of(": ") != std::string::npos) {
      return Status::failure(EINVAL, found +
                                         " has a space or a colon in its path, which LD_PRELOAD "
                                         "cannot hold; install Pawl elsewhere");
    }
    return found;
  }
  return Status::failure(ENOENT, fmt::format("{} is neither beside {} nor in ../lib from there; "
                                             "install Pawl completely",
                                             kPreloadName, own));
}

}  // namespace pawl::cli
