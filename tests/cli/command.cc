#include "cli/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pawl/pawl.h"
#include "support/temporary_directory.h"

namespace pawl::test {

namespace {

constexpr std::size_t kPage = 4096;

int exit_code_of(pid_t process) {
  int status = 0;
  if (::waitpid(process, &status, 0) != process) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// In a child: maps, or dies with a text.
char* map_or_die(const std::string& file, std::size_t length) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  pawl_options options;
  if (::pawl_options_init(&options) != 0) ::_exit(70);
  options.journal_size_bytes = 1 << 20;
  options.apply_threshold_pages = 1 << 20;  // the records stay in the journal
  void* const memory = ::pawl_mmap_with(nullptr, length, PROT_READ | PROT_WRITE, MAP_ATOMIC,
                                        descriptor, 0, &options);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "%s\n", ::pawl_last_error());
    ::_exit(71);
  }
  return static_cast<char*>(memory);
}

}  // namespace

Answer pawl(const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment) {
  const char* const command = std::getenv("PAWL_COMMAND");
  if (command == nullptr) {
    ADD_FAILURE() << "PAWL_COMMAND names no command";
    return {};
  }
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const std::string err = directory / "err";
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) ::_exit(72);
    if (std::freopen(err.c_str(), "w", stderr) == nullptr) ::_exit(72);
    std::vector<char*> argv = {const_cast<char*>(command)};
    for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    for (const std::string& setting : environment) ::putenv(const_cast<char*>(setting.c_str()));
    ::execv(command, argv.data());
    ::_exit(73);
  }
  Answer answer;
  answer.code = exit_code_of(child);
  answer.out = read_file(out);
  answer.err = read_file(err);
  return answer;
}

Answer with_own_mounts(const std::string& script, const std::string& argument) {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const std::string err = directory / "err";
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) ::_exit(72);
    if (std::freopen(err.c_str(), "w", stderr) == nullptr) ::_exit(72);
    if (std::system("unshare -Urm true") != 0) ::_exit(kNoMounts);
    ::execlp("unshare", "unshare", "-Urm", "sh", "-c", script.c_str(), argument.c_str(), nullptr);
    ::_exit(kNoMounts);
  }
  Answer answer;
  answer.code = exit_code_of(child);
  answer.out = read_file(out);
  answer.err = read_file(err);
  return answer;
}

void leave_by_crash(const std::string& file, int commits, int pages) {
  write_file(file, std::string(static_cast<std::size_t>(pages) * kPage, '\0'));
  const std::size_t length = static_cast<std::size_t>(pages) * kPage;
  const pid_t child = ::fork();
  if (child == 0) {
    char* const memory = map_or_die(file, length);
    for (int commit = 1; commit <= commits; ++commit) {
      const std::string text = "commit " + std::to_string(commit);
      std::memcpy(memory + static_cast<std::size_t>((commit - 1) % pages) * kPage, text.data(),
                  text.size());
      if (::pawl_msync(memory, length, MS_SYNC) != 0) ::_exit(74);
    }
    ::_exit(0);
  }
  ASSERT_EQ(exit_code_of(child), 0);
}

Holder::Holder(const std::string& file) {
  int ends[2];
  if (::pipe(ends) != 0) {
    ADD_FAILURE() << "no pipe";
    return;
  }
  process_ = ::fork();
  if (process_ == 0) {
    ::close(ends[0]);
    map_or_die(file, kPage);
    if (::write(ends[1], "r", 1) != 1) ::_exit(75);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char ready = 0;
  EXPECT_EQ(::read(ends[0], &ready, 1), 1) << "the holder could not map " << file;
  ::close(ends[0]);
}

Holder::~Holder() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  exit_code_of(process_);
}

}  // namespace pawl::test
