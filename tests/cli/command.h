// Runs the command as a person would, and makes the files that crashes leave.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace pawl::test {

struct Answer {
  int code = -1;  // 128 + signal when it was killed
  std::string out;
  std::string err;
};

// Runs the pawl command that PAWL_COMMAND names.  `environment` holds NAME=VALUE.
Answer pawl(const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment = {});

// Runs a script of the shell with mounts of its own, and with "$0" as given; $PAWL_COMMAND is the
// command.  It exits with kNoMounts where it may not mount.
inline constexpr int kNoMounts = 77;
Answer with_own_mounts(const std::string& script, const std::string& argument);

// Makes a file of `pages` pages, maps it atomically, writes "commit 1", "commit 2", ... to the
// start of its first pages with one commit each, and dies without closing.
void leave_by_crash(const std::string& file, int commits, int pages = 8);

// A process that has the file mapped atomically until it is destroyed.
class Holder {
 public:
  explicit Holder(const std::string& file);
  ~Holder();
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  pid_t process() const { return process_; }

 private:
  pid_t process_ = -1;
};

}  // namespace pawl::test
