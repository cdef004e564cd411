#include "wsp/power/power_sources.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "wsp/clock.h"

namespace pawl::wsp {

namespace {

constexpr std::string_view kFailing = "failing";
constexpr std::size_t kLineBytesMax = 64;  // a longer one is no word of ours, and is forgotten
constexpr char kFailingByte = 'F';
constexpr int kOddLinesToldMax = 8;  // who writes them without end is not repeated without end
constexpr int kReadsMax = 64;  // at a time: who talks without end is heard again at the next call

Result<Descriptor> open_signal() {
  sigset_t power;
  ::sigemptyset(&power);
  ::sigaddset(&power, SIGPWR);
  if (const int error_number = ::pthread_sigmask(SIG_BLOCK, &power, nullptr); error_number != 0)
    return FailedCall{error_number, "cannot block SIGPWR"};
  Descriptor made(::signalfd(-1, &power, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!made.valid()) return FailedCall{errno, "cannot listen for SIGPWR"};
  return made;
}

Result<Descriptor> open_pipe(const std::string& path) {
  if (::mkfifo(path.c_str(), 0600) != 0 && errno != EEXIST)
    return FailedCall{errno, "cannot make the pipe " + path};
  Descriptor made(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!made.valid()) return FailedCall{errno, "cannot open the pipe " + path};
  struct stat facts{};
  if (::fstat(made.get(), &facts) != 0 || !S_ISFIFO(facts.st_mode))
    return Status::failure(EEXIST, path + " is no named pipe; remove it, or name another");
  return made;
}

Result<Descriptor> open_serial_line(const std::string& path) {
  Descriptor made(::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (!made.valid()) return FailedCall{errno, "cannot open the serial line " + path};
  termios settings{};
  if (::tcgetattr(made.get(), &settings) != 0)
    return Status::failure(ENOTTY, path + " is no serial line; name a terminal device");
  ::cfmakeraw(&settings);
  // The line is watched whether or not a modem's wires say that somebody is there.
  settings.c_cflag |= CLOCAL | CREAD;
  settings.c_cflag &= ~static_cast<tcflag_t>(CSTOPB | CRTSCTS);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  if (::cfsetspeed(&settings, B115200) != 0 || ::tcsetattr(made.get(), TCSANOW, &settings) != 0)
    return FailedCall{errno, "cannot set the serial line " + path};
  return made;
}

}  // namespace

const char* name_of(PowerWord::Source source) {
  switch (source) {
    case PowerWord::Source::kSignal:
      return "SIGPWR";
    case PowerWord::Source::kPipe:
      return "the pipe";
    case PowerWord::Source::kSerialLine:
      return "the serial line";
  }
  return "unknown";
}

Status PowerSources::add(int descriptor) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = descriptor;
  if (::epoll_ctl(any_.get(), EPOLL_CTL_ADD, descriptor, &wanted) != 0)
    return FailedCall{errno, "cannot wait for word of a power failure"};
  return {};
}

Result<PowerSources> PowerSources::open(const PowerSourceOptions& options) {
  PowerSources made;
  made.any_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!made.any_.valid()) return FailedCall{errno, "cannot wait for word of a power failure"};
  const auto take = [&made](Descriptor& into, Result<Descriptor> from) -> Status {
    if (!from.ok()) return from.status();
    into = std::move(from.value());
    return made.add(into.get());
  };
  PAWL_TRY(take(made.signal_, open_signal()));
  if (!options.pipe.empty()) {
    made.pipe_name_ = options.pipe;
    made.shown_pipe_ = options.shown_pipe.empty() ? options.pipe : options.shown_pipe;
    PAWL_TRY(take(made.pipe_, open_pipe(options.pipe)));
  }
  if (!options.serial_line.empty()) {
    made.serial_line_name_ = options.serial_line;
    PAWL_TRY(take(made.serial_line_, open_serial_line(options.serial_line)));
  }
  return made;
}

bool PowerSources::hear_signal() {
  signalfd_siginfo told{};
  bool failing = false;
  // A signal that is pending is pending once.
  while (::read(signal_.get(), &told, sizeof(told)) == ssize_t{sizeof(told)}) failing = true;
  return failing;
}

// Whether the line says that the power fails.
bool PowerSources::end_line() {
  const bool failing = line_ == kFailing;
  if (!failing && !line_.empty() && !odd_line_) odd_line_ = line_;
  line_.clear();
  return failing;
}

// A pipe that came to its end would be ready for ever.  The new one is there before the old one
// goes: what is written meanwhile is not lost.
Status PowerSources::begin_pipe_anew() {
  Result<Descriptor> anew = open_pipe(pipe_name_);
  if (!anew.ok()) return anew.status();
  PAWL_TRY(add(anew.value().get()));
  pipe_ = std::move(anew.value());
  return {};
}

Status PowerSources::not_understood() {
  std::string text = *std::exchange(odd_line_, std::nullopt);
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return Status::failure(EPROTO, "the pipe " + shown_pipe_ + " said \"" + text +
                                     "\", which is no word of a power failure; write: failing");
}

Result<bool> PowerSources::hear_pipe() {
  std::array<char, 256> bytes;
  bool failing = false;
  for (int i = 0; i < kReadsMax; ++i) {
    const ssize_t count = ::read(pipe_.get(), bytes.data(), bytes.size());
    if (count < 0) break;
    if (count == 0) {
      failing = end_line() || failing;
      const Status anew = begin_pipe_anew();
      if (failing || anew.ok()) break;
      pipe_.reset(-1);  // closed, so that it is not polled for ever
      return anew;
    }
    for (const char byte : std::string_view(bytes.data(), static_cast<std::size_t>(count))) {
      if (byte == '\n') {
        failing = end_line() || failing;
      } else if (line_.size() < kLineBytesMax) {
        line_ += byte;
      }
    }
  }
  const bool has_odd_line = odd_line_ && odd_lines_told_ < kOddLinesToldMax;
  if (!failing && has_odd_line) {
    odd_lines_told_ += 1;
    return not_understood();
  }
  odd_line_.reset();
  return failing;
}

Result<bool> PowerSources::hear_serial_line() {
  std::array<char, 256> bytes;
  bool failing = false;
  for (int i = 0; i < kReadsMax; ++i) {
    const ssize_t count = ::read(serial_line_.get(), bytes.data(), bytes.size());
    if (count > 0) {
      failing = failing || std::find(bytes.begin(), bytes.begin() + count, kFailingByte) !=
                               bytes.begin() + count;
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
    // Closed, so that it is not polled for ever; what it said before counts.
    serial_line_.reset(-1);
    if (failing) break;
    return Status::failure(EIO, "the serial line " + serial_line_name_ +
                                    " hung up; a power failure is no longer heard from it");
  }
  return failing;
}

Result<std::optional<PowerWord>> PowerSources::listen() {
  const auto word = [](PowerWord::Source source) -> std::optional<PowerWord> {
    return PowerWord{source, monotonic_ns()};
  };
  if (hear_signal()) return word(PowerWord::Source::kSignal);
  if (pipe_.valid()) {
    Result<bool> failing = hear_pipe();
    if (!failing.ok()) return failing.status();
    if (failing.value()) return word(PowerWord::Source::kPipe);
  }
  if (serial_line_.valid()) {
    Result<bool> failing = hear_serial_line();
    if (!failing.ok()) return failing.status();
    if (failing.value()) return word(PowerWord::Source::kSerialLine);
  }
  return std::optional<PowerWord>();
}

Status tell_power_failing(const std::string& pipe) {
  // Without a listener a pipe that is opened only for writing is an error, not a wait.
  const Descriptor into(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!into.valid()) return FailedCall{errno, "nobody listens at " + pipe};
  const std::string line = std::string(kFailing) + '\n';
  if (::write(into.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return FailedCall{errno, "cannot say to " + pipe + " that the power fails"};
  return {};
}

}  // namespace pawl::wsp
