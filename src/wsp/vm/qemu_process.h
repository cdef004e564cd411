// A QEMU that was started here, and dies with whoever started it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/vm/file_identity.h"

namespace pawl::wsp::vm {

class QemuProcess {
 public:
  // `passed` are open in the new process under their own numbers, all else that is close-on-exec is
  // not.  SIGINT, SIGTERM, SIGHUP and SIGPWR stay blocked there: who ends the guest is whoever
  // watches it.  Its standard streams are the caller's.  ENOENT where there is no such program.
  static Result<QemuProcess> start(const std::vector<std::string>& command_line,
                                   const std::vector<int>& passed);

  QemuProcess(QemuProcess&& other) noexcept;
  QemuProcess& operator=(QemuProcess&&) = delete;
  // Kills it if it still runs.
  ~QemuProcess();

  pid_t number() const { return number_; }
  // Readable when it has ended.
  int descriptor() const { return handle_.get(); }

  // As waitpid(2) tells it; of one that runs only after a kill.  At once.
  void kill_now() const;
  // Of a disk: whether it is this file that it has open, whatever its name leads to by now.
  Result<bool> has_open(const FileIdentity& file) const;
  int wait();

 private:
  QemuProcess(pid_t number, Descriptor handle) : number_(number), handle_(std::move(handle)) {}

  pid_t number_;
  Descriptor handle_;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace pawl::wsp::vm
