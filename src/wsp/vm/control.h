// What others ask of a machine that runs: a socket in its directory, a line of JSON each way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/vm/directory.h"

namespace pawl::wsp::vm {

struct ControlRequest {
  enum class What { kSave, kRehearse };
  What what = What::kSave;
  std::uint64_t times = 1;  // rehearsals, at most kRehearsalsMax
};

// Who listens.  One request at a time; who asks meanwhile waits.
class ControlSocket {
 public:
  static Result<ControlSocket> open(const MachineDirectory& directory);

  // To be polled for input.
  int descriptor() const { return listens_.get(); }

  struct Asked {
    ControlRequest request;
    Descriptor line;
  };
  // Takes a request; EAGAIN where there is none, or what was said is none.  Who has connected and
  // says nothing is waited for a moment; meanwhile, when there is input at the descriptor `urgent`,
  // `gives_up` is asked.
  Result<Asked> accept(int urgent, const std::function<bool()>& gives_up);

 private:
  explicit ControlSocket(Descriptor listens) : listens_(std::move(listens)) {}
  Descriptor listens_;
};

// An empty text says that it is done.
void answer_request(const Descriptor& line, const std::string& failure);

// Asks, and waits for the answer for at most `wait_ms`.  ECONNREFUSED where nothing runs; EIO with
// the machine's own reason where it could not do it.
Status ask_machine(const MachineDirectory& directory, const ControlRequest& request, int wait_ms);

}  // namespace pawl::wsp::vm
