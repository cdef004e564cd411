#include "wsp/vm/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "wsp/budget/save_budget.h"
#include "wsp/clock.h"

namespace pawl::wsp::vm {

namespace {

using ControlJson = nlohmann::json;

constexpr const char* kControlSocket = "control";
constexpr std::size_t kRequestBytesMaximum = 4096;
constexpr int kRequestMsMax = 1000;  // from connecting to having asked
constexpr int kWaitingMax = 16;

// One line, without its end; nothing where none came in time, or before `gives_up` said so, which
// is asked when there is input at `urgent` (-1: never).
std::optional<std::string> read_line(int descriptor, int wait_ms, int urgent,
                                     const std::function<bool()>& gives_up) {
  const Deadline deadline(wait_ms);
  std::string text;
  std::array<char, 512> bytes;
  while (text.size() < kRequestBytesMaximum) {
    std::array<pollfd, 2> wanted{pollfd{descriptor, POLLIN, 0}, pollfd{urgent, POLLIN, 0}};
    if (::poll(wanted.data(), wanted.size(), deadline.left_ms()) <= 0) return std::nullopt;
    if (wanted[1].revents != 0 && gives_up()) return std::nullopt;
    if (wanted[0].revents == 0) continue;
    const ssize_t count = ::recv(descriptor, bytes.data(), bytes.size(), 0);
    if (count <= 0) return std::nullopt;
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (text.back() == '\n') return text;
  }
  return std::nullopt;
}

// What is asked for; nothing where it is no request.  Anybody may write anything into the socket.
std::optional<ControlRequest> request_of(const ControlJson& json) {
  if (!json.is_object() || !json.contains("do")) return std::nullopt;
  if (json["do"] == "save") return ControlRequest{};
  if (json["do"] != "rehearse") return std::nullopt;
  ControlRequest request{ControlRequest::What::kRehearse, 1};
  if (!json.contains("times")) return request;
  if (!json["times"].is_number_unsigned()) return std::nullopt;
  request.times = std::clamp<std::uint64_t>(json["times"], 1, kRehearsalsMax);
  return request;
}

// What is wrong with an answer; empty: nothing.
std::string failure_of(const ControlJson& answer) {
  if (!answer.is_object() || !answer.contains("done")) return "not an answer";
  if (answer["done"] == true) return "";
  const bool says_why = answer.contains("failure") && answer["failure"].is_string();
  return says_why ? answer["failure"].get<std::string>() : "no reason";
}

void send_line(int descriptor, const ControlJson& json) {
  const std::string line = json.dump(-1, ' ', false, ControlJson::error_handler_t::replace) + '\n';
  // Who has gone does not want to know.
  (void)!::send(descriptor, line.data(), line.size(), MSG_NOSIGNAL);
}

}  // namespace

Result<ControlSocket> ControlSocket::open(const MachineDirectory& directory) {
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return FailedCall{errno, "cannot make a socket"};
  // Who has the lock owns the name; one that is left over is of a machine that was killed.
  PAWL_TRY(listen_in(directory.files(), kControlSocket, made, kWaitingMax));
  return ControlSocket(std::move(made));
}

Result<ControlSocket::Asked> ControlSocket::accept(int urgent,
                                                   const std::function<bool()>& gives_up) {
  Descriptor line(::accept4(listens_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!line.valid()) return FailedCall{errno, "nobody asks"};
  const std::optional<std::string> text = read_line(line.get(), kRequestMsMax, urgent, gives_up);
  const std::optional<ControlRequest> request =
      text.has_value() ? request_of(ControlJson::parse(*text, nullptr, false)) : std::nullopt;
  if (!request.has_value()) {
    answer_request(line, "what was asked is no request");
    return Status::failure(EAGAIN, "what was asked is no request");
  }
  return Asked{*request, std::move(line)};
}

void answer_request(const Descriptor& line, const std::string& failure) {
  send_line(line.get(), {{"done", failure.empty()}, {"failure", failure}});
}

Status ask_machine(const MachineDirectory& directory, const ControlRequest& request, int wait_ms) {
  const Descriptor line(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = socket_in(directory.descriptor(), kControlSocket);
  if (!line.valid() ||
      ::connect(line.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Status::failure(ECONNREFUSED, "no machine runs from " + directory.path());
  const bool saves = request.what == ControlRequest::What::kSave;
  send_line(line.get(), {{"do", saves ? "save" : "rehearse"}, {"times", request.times}});
  const std::optional<std::string> text = read_line(line.get(), wait_ms, -1, nullptr);
  if (!text.has_value())
    return Status::failure(ETIMEDOUT, "the machine of " + directory.path() + " did not answer");
  const std::string failure = failure_of(ControlJson::parse(*text, nullptr, false));
  if (!failure.empty()) return Status::failure(EIO, failure);
  return {};
}

}  // namespace pawl::wsp::vm
