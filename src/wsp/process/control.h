// Commands to a supervisor, over the socket in its directory: one line each way.  The answer is
// JSON.
#pragma once

#include <optional>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/directory/own_directory.h"

namespace pawl::wsp {

// At the supervisor.
class SupervisorSocket {
 public:
  static Result<SupervisorSocket> open(const OwnDirectory& directory);
  int descriptor() const { return listening_.get(); }

  // A command that came, without its line's end; the next answer() goes to whoever sent it.
  std::optional<std::string> take();
  void answer(const std::string& text);

 private:
  SupervisorSocket() = default;
  Descriptor listening_;
  Descriptor peer_;
};

// At the other end: waits for the answer for at most `wait_ms`, for the supervisor may be
// anybody's. ENOENT, ECONNREFUSED: there is none.  EACCES, EPERM: it is another user's.
Result<std::string> command_supervisor(const std::string& directory, const std::string& command,
                                       int wait_ms);

}  // namespace pawl::wsp
