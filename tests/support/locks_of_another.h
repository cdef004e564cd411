// While it lives, another process takes fcntl() locks on a file and gives them up, as fast as it
// can.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <string>

namespace pawl::test {

class LocksOfAnother {
 public:
  explicit LocksOfAnother(const std::string& path, off_t locks = 50) : process_(::fork()) {
    if (process_ != 0) return;
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    for (;;) {
      for (const bool is_taken : {true, false}) {
        for (off_t at = 0; at < locks; ++at) {  // none beside the next one, or they were one
          struct flock own = {.l_type = static_cast<short>(is_taken ? F_WRLCK : F_UNLCK),
                              .l_whence = SEEK_SET,
                              .l_start = 2 * at,
                              .l_len = 1,
                              .l_pid = 0};
          ::fcntl(file, F_SETLK, &own);
        }
      }
    }
  }
  LocksOfAnother(const LocksOfAnother&) = delete;
  LocksOfAnother& operator=(const LocksOfAnother&) = delete;
  ~LocksOfAnother() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

 private:
  pid_t process_;
};

}  // namespace pawl::test
