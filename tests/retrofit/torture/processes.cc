#include "torture/processes.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture/store.h"

namespace pawl::retrofit {

Child start(const Command& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) die("pipe");
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t process = fork();
  if (process < 0) die("fork");
  if (process == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  ::close(ends[1]);
  return {process, ends[0]};
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[1 << 16];
  for (ssize_t got = read(descriptor, buffer, sizeof(buffer)); got > 0;
       got = read(descriptor, buffer, sizeof(buffer))) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  return text;
}

Outcome run(const Command& command) {
  const Child child = start(command);
  Outcome outcome{0, read_all(child.output)};
  waitpid(child.process, &outcome.status, 0);
  return outcome;
}

}  // namespace pawl::retrofit
