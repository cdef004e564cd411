#include "wsp/vm/qmp.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "wsp/clock.h"

namespace pawl::wsp::vm {

namespace {

// Of the command that it answers; the greeting, and complaints about what is no command, have none.
std::uint64_t number_of(const Qmp::Json& answer) {
  const auto found = answer.find("id");
  return found != answer.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

Status hung_up() { return Status::failure(EPIPE, "QEMU has ended, or closed its control line"); }

}  // namespace

std::string Qmp::text_in(const Json& part, const char* name, const std::string& otherwise) {
  const Json& found = part_in(part, name);
  return found.is_string() ? found.get<std::string>() : otherwise;
}

std::int64_t Qmp::number_in(const Json& part, const char* name) {
  const Json& found = part_in(part, name);
  return found.is_number_integer() ? found.get<std::int64_t>() : 0;
}

bool Qmp::is_true_in(const Json& part, const char* name) {
  const Json& found = part_in(part, name);
  return found.is_boolean() && found.get<bool>();
}

const Qmp::Json& Qmp::part_in(const Json& part, const char* name) {
  static const Json nothing;
  if (!part.is_object()) return nothing;
  const auto found = part.find(name);
  return found == part.end() ? nothing : *found;
}

Status Qmp::take_lines() {
  std::size_t begin = 0;
  for (std::size_t end = text_.find('\n'); end != std::string::npos;
       begin = end + 1, end = text_.find('\n', begin)) {
    Json line = Json::parse(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                            text_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (line.is_discarded() || !line.is_object())
      return Status::failure(EPROTO, "QEMU said something that is no QMP");
    if (line.contains("event")) {
      if (events_.size() == kEventsMax) events_.pop_front();
      const std::string name = text_in(line, "event");
      if (last_of_name_.size() < kEventNamesMax || last_of_name_.contains(name))
        last_of_name_[name] = events_heard_ + 1;
      events_.push_back({std::move(line), ++events_heard_});
    } else {
      answers_.push_back({std::move(line), events_heard_});
    }
  }
  text_.erase(0, begin);
  if (text_.size() > kLineBytesMax)
    return Status::failure(EPROTO, "an answer of QEMU's is longer than a line may be");
  return {};
}

Status Qmp::read_some(int wait_ms) {
  pollfd wanted{socket_.get(), POLLIN, 0};
  const int ready = ::poll(&wanted, 1, wait_ms);
  if (ready < 0 && errno != EINTR) return FailedCall{errno, "cannot wait for QEMU"};
  if (ready <= 0) return {};
  std::array<char, 16384> bytes;
  const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count == 0 || (count < 0 && errno == ECONNRESET)) return hung_up();
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return {};
    return FailedCall{errno, "cannot hear QEMU"};
  }
  text_.append(bytes.data(), static_cast<std::size_t>(count));
  return take_lines();
}

Result<std::uint64_t> Qmp::send(const char* command, const Json& arguments, int descriptor) {
  Json asked{{"execute", command}, {"id", ++commands_}};
  if (!arguments.is_null()) asked["arguments"] = arguments;
  std::string line = asked.dump() + '\n';
  iovec part{line.data(), line.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return hung_up();
  // Commands are short: a line that takes no more of them has nobody at its other end.
  if (sent != static_cast<ssize_t>(line.size()))
    return Status::failure(ETIMEDOUT, std::string("QEMU takes no commands: ") + command);
  return commands_;
}

Result<Qmp::Json> Qmp::answer(std::uint64_t command, int wait_ms) {
  const Deadline deadline(wait_ms);
  for (;;) {
    while (!answers_.empty()) {
      const Answer heard = std::move(answers_.front());
      answers_.pop_front();
      if (number_of(heard.answer) != command) continue;
      last_event_before_answer_ = heard.last_event_before;
      if (heard.answer.contains("error"))
        return Status::failure(
            EIO, text_in(part_in(heard.answer, "error"), "desc", "QEMU gave no reason"));
      return part_in(heard.answer, "return");
    }
    if (deadline.passed()) return Status::failure(ETIMEDOUT, "QEMU did not answer in time");
    PAWL_TRY(read_some(deadline.left_ms()));
  }
}

Result<Qmp::Json> Qmp::ask(const char* command, const Json& arguments, int wait_ms,
                           int descriptor) {
  const Result<std::uint64_t> sent = send(command, arguments, descriptor);
  if (!sent.ok()) return sent.status();
  Result<Json> answered = answer(sent.value(), wait_ms);
  if (!answered.ok()) {
    return answered.status().prefixed(std::string(command) + ": ");
  }
  return answered;
}

Result<Qmp::Event> Qmp::event(const std::string& name, std::uint64_t after, int wait_ms) {
  const Deadline deadline(wait_ms);
  for (;;) {
    for (const Event& event : events_)
      if (event.number > after && text_in(event.event, "event") == name) return event;
    if (deadline.passed())
      return Status::failure(ETIMEDOUT, "QEMU did not tell of " + name + " in time");
    PAWL_TRY(read_some(deadline.left_ms()));
  }
}

bool Qmp::has_heard(const std::string& name, std::uint64_t after) const {
  const auto last = last_of_name_.find(name);
  return last != last_of_name_.end() && last->second > after;
}

void Qmp::hear_last_words() {
  // What it had said fits into the socket's buffer: the end is near.
  for (std::size_t i = 0; i < kEventsMax; ++i)
    if (!read_some(0).ok()) return;
}

Status Qmp::begin(int wait_ms) {
  const Deadline deadline(wait_ms);
  // The greeting is neither an event nor an error: it comes as the answer to nothing.
  Result<Json> greeting = answer(0, deadline.left_ms());
  if (!greeting.ok()) return greeting.status();
  return ask("qmp_capabilities", Json(), deadline.left_ms()).status();
}

}  // namespace pawl::wsp::vm
