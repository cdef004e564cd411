#include "support/killed_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include <gtest/gtest.h>

namespace pawl::test {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

}  // namespace

void tell_bytes(const void* bytes, std::size_t count) {
  if (::write(STDOUT_FILENO, bytes, count) != static_cast<ssize_t>(count)) ::_exit(1);
}

KilledProcess::KilledProcess(const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
  told_.reset(ends[0]);
  const Descriptor telling(ends[1]);
  std::vector<char*> all = {::program_invocation_short_name};
  for (const std::string& argument : arguments) all.push_back(const_cast<char*>(argument.c_str()));
  all.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, telling.get(), STDOUT_FILENO);
  const int error =
      ::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, all.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("cannot start the process to be killed", error);
}

KilledProcess::~KilledProcess() {
  if (process_ > 0) kill();
}

bool KilledProcess::hear_bytes(void* bytes, std::size_t count) {
  return ::read(told_.get(), bytes, count) == static_cast<ssize_t>(count);
}

bool KilledProcess::has_ended() const {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == process_;
}

void KilledProcess::kill() {
  ::kill(process_, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(process_, &status, 0), process_);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself";
  process_ = 0;
}

}  // namespace pawl::test
