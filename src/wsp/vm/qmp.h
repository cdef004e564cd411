// The conversation with a running QEMU, in its machine protocol (QEMU's docs/interop/qmp-spec.txt):
// a line of JSON for each command, answer and event.
//
// Every wait has a bound.  Failures: EPIPE, QEMU has ended or closed the line; ETIMEDOUT, it did
// not answer in time; EPROTO, what it said is no QMP, or is longer than a line may be; EIO, it
// refused the command, and the text has its reason.
//
// Not safe for use by several threads at once.
#pragma once

#include <cstddef>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"

namespace pawl::wsp::vm {

class Qmp {
 public:
  using Json = nlohmann::json;

  // Bytes of an answer, and events that nobody has asked for yet.
  static constexpr std::size_t kLineBytesMax = std::size_t{16} << 20;
  static constexpr std::size_t kEventsMax = 1024;

  explicit Qmp(Descriptor socket) : socket_(std::move(socket)) {}

  // Hears the greeting and asks for no capabilities.
  Status begin(int wait_ms);

  // `descriptor`, unless it is -1, goes along with the command, as `getfd` wants it.
  Result<Json> ask(const char* command, const Json& arguments, int wait_ms, int descriptor = -1);

  // ask() in two parts, for commands that QEMU can begin while another one is under way.  Answers
  // come in the order of the commands.
  Status send(const char* command, const Json& arguments, int descriptor = -1);
  Result<Json> answer(int wait_ms);

  // The next event of that name, of those that came since the last forget_events().
  Result<Json> event(const std::string& name, int wait_ms);
  void forget_events() { events_.clear(); }

  // To be polled for input while nothing is asked; then hear() takes in what there is.
  int descriptor() const { return socket_.get(); }
  Status hear() { return read_some(0); }

 private:
  Status read_some(int wait_ms);
  Status take_lines();

  Descriptor socket_;
  std::string text_;
  std::deque<Json> answers_;
  std::deque<Json> events_;
};

}  // namespace pawl::wsp::vm
