// The conversation with a running QEMU, in its machine protocol (QEMU's docs/interop/qmp-spec.txt):
// a line of JSON for each command, answer and event.
//
// Every wait has a bound.  Failures: EPIPE, QEMU has ended or closed the line; ETIMEDOUT, it did
// not answer in time; EPROTO, what it said is no QMP, or is longer than a line may be; EIO, it
// refused the command, and the text has its reason.
//
// Commands and events are numbered: what comes late, of a command that was given up, is not taken
// for the answer to another one.
//
// Not safe for use by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"

namespace pawl::wsp::vm {

class Qmp {
 public:
  using Json = nlohmann::json;

  // What a part of an answer says under a name: `otherwise` where it is no object, says nothing of
  // it, or something of another kind.
  static std::string text_in(const Json& part, const char* name, const std::string& otherwise = "");
  static std::int64_t number_in(const Json& part, const char* name);
  static bool is_true_in(const Json& part, const char* name);
  static const Json& part_in(const Json& part, const char* name);

  // Bytes of an answer, and events that nobody has asked for yet.
  static constexpr std::size_t kLineBytesMax = std::size_t{16} << 20;
  static constexpr std::size_t kEventsMax = 1024;
  static constexpr std::size_t kEventNamesMax = 1024;

  explicit Qmp(Descriptor socket) : socket_(std::move(socket)) {}

  // Hears the greeting and asks for no capabilities.
  Status begin(int wait_ms);

  // `descriptor`, unless it is -1, goes along with the command, as `getfd` wants it.
  Result<Json> ask(const char* command, const Json& arguments, int wait_ms, int descriptor = -1);

  // ask() in two parts, for commands that QEMU can begin while another one is under way: the
  // command's number, and the answer to it.  Answers come in the order of the commands; those to
  // earlier ones are forgotten.
  Result<std::uint64_t> send(const char* command, const Json& arguments, int descriptor = -1);
  Result<Json> answer(std::uint64_t command, int wait_ms);

  struct Event {
    Json event;
    std::uint64_t number = 0;
  };
  // The first event of that name whose number is greater than `after`, of those that came since the
  // last forget_events().
  Result<Event> event(const std::string& name, std::uint64_t after, int wait_ms);
  // Whether there ever was one, forgotten since or not; does not wait.
  bool has_heard(const std::string& name, std::uint64_t after) const;
  // The number of the last event that came before the last answer.
  std::uint64_t last_event_before_answer() const { return last_event_before_answer_; }
  void forget_events() { events_.clear(); }

  // To be polled for input while nothing is asked; then hear() takes in what there is.
  int descriptor() const { return socket_.get(); }
  Status hear() { return read_some(0); }
  // Takes in all that QEMU has said, which has ended.
  void hear_last_words();

 private:
  Status read_some(int wait_ms);
  Status take_lines();

  Descriptor socket_;
  std::string text_;
  struct Answer {
    Json answer;
    std::uint64_t last_event_before;
  };
  std::deque<Answer> answers_;
  std::deque<Event> events_;
  std::uint64_t commands_ = 0;
  std::uint64_t events_heard_ = 0;
  std::map<std::string, std::uint64_t> last_of_name_;  // QEMU has some sixty names
  std::uint64_t last_event_before_answer_ = 0;
};

}  // namespace pawl::wsp::vm
