#include "wsp/process/supervisor.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "medium/sole_closer.h"
#include "wsp/process/image.h"
#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

// Servers have their files and sockets by then.
constexpr auto kCheckAfter = std::chrono::seconds(1);
constexpr int kStopTriesMax = 5;  // of threads: the machine may be busy, or a disk slow

sigset_t supervised_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT})
    ::sigaddset(&signals, signal);
  return signals;
}

class Supervision {
  using Clock = std::chrono::steady_clock;

 public:
  Supervision(Process& process, SupervisorEars& ears, double window_us, const Process::Tell& tell,
              const StepHook& hook)
      : process_(process),
        power_(ears.power),
        ears_(ears),
        window_us_(window_us),
        tell_(tell),
        hook_(hook) {}

  Result<SupervisionEnding> run() {
    set_sole_closer(true);
    process_.set_urgent([this] {
      pollfd source{power_.descriptor(), POLLIN, 0};
      return ::poll(&source, 1, 0) > 0;
    });
    process_.resume_all();
    process_.take_events();
    while (!process_.has_ended() && !ending_.was_saved) {
      pollfd sources[] = {{power_.descriptor(), POLLIN, 0},
                          {ears_.signals.get(), POLLIN, 0},
                          {ears_.control.descriptor(), POLLIN, 0}};
      const int wait_ms = process_.has_more_events() ? 0 : until_check_ms();
      if (::poll(sources, 3, wait_ms) < 0 && errno != EINTR)
        return FailedCall{errno, "cannot wait for what happens"};
      // The power first: it does not wait.
      if (sources[0].revents != 0) {
        hear_power();
        if (!ending_.was_saved) process_.take_events();  // it was more urgent
      }
      if (sources[1].revents != 0) hear_signals(ears_.signals.get());
      if (sources[2].revents != 0 && !ending_.was_saved) hear_command(ears_.control);
      if (!ending_.was_saved && until_check_ms() == 0) check_once();
      if (!ending_.was_saved && process_.has_more_events()) process_.take_events();
    }
    process_.set_urgent({});
    ending_.program = process_.ending();
    if (!ending_.was_saved) {
      // Whoever checks is not to read why an earlier save failed.
      const bool was_killed = ending_.program.signal != 0;
      const bool has_failed = was_killed || ending_.program.exit_code != 0;
      if (has_failed && process_.memory().is_full()) {
        tell_(
            fmt::format("{}: No space left on device: memory that the program touches anew finds "
                        "no room, which ends it (SIGBUS) or fails its calls (EFAULT); make room "
                        "there and start it again",
                        process_.memory().directory().path()));
      }
      write_refusal(process_.memory().image(),
                    fmt::format("the program ended ({} {})", was_killed ? "signal" : "exit code",
                                was_killed ? ending_.program.signal : ending_.program.exit_code));
    }
    return ending_;
  }

 private:
  void hear_power() {
    Result<std::optional<PowerWord>> word = power_.listen();
    if (!word.ok()) {
      tell_(word.status().text());
      return;
    }
    if (!word.value()) return;
    static_cast<void>(save_now());  // it was told why not
  }

  // -1: it was done.
  int until_check_ms() const {
    if (is_checked_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(check_at_ - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  // A program that can never be saved is not to be found out by the power's failure.
  void check_once() {
    is_checked_ = true;
    const std::string facts = read_proc(process_.leader(), "status");
    // Of that the kernel tells at once, and stop_all() only when all others have stood still long.
    const Result<SaveOutlook> found =
        field_of(facts, "State").starts_with('Z')
            ? Result<SaveOutlook>(
                  Status::failure(ESRCH, "the program's first thread has ended before the others"))
            : check_savable(process_);
    process_.take_events();  // stopping may have heard the signal that tells of them
    if (process_.has_ended()) return;
    const int error_number = found.status().error_number();
    // What was heard may be no power failure, and what did not stop at once may stop later.
    if (error_number == ECANCELED || (error_number == ETIME && ++stop_tries_ < kStopTriesMax)) {
      is_checked_ = false;
      check_at_ = Clock::now() + kCheckAfter;
      return;
    }
    if (found.ok()) {
      tell_outlook(found.value());
    } else {
      tell_(fmt::format(
          "a save would fail now, and the program be lost with the power: {}. It runs on; 'pawl "
          "wsp rehearse DIR 1' says whether it can be saved later",
          found.status().text()));
    }
  }

  void tell_outlook(const SaveOutlook& outlook) {
    if (outlook.took_us > window_us_) {
      tell_(fmt::format(
          "a save would take longer than the power lasts: {:.0f} ms and what is flushed, and the "
          "window is {:.0f} ms. The program has {}, which take most of that: let it have fewer, or "
          "enlarge the window (--window-ms); 'pawl wsp rehearse DIR' measures a save",
          outlook.took_us / 1000, window_us_ / 1000, outlook.burden));
    }
    if (!outlook.restorable.ok())
      tell_("what is saved could not be restored: " + outlook.restorable.text());
  }

  Status save_now() {
    Result<SaveTiming> saved = save(process_, hook_);
    if (!saved.ok()) {
      if (!process_.has_ended()) tell_("not saved: " + saved.status().text());
      process_.take_events();
      return saved.status();
    }
    ending_.was_saved = true;
    ending_.timing = saved.value();
    process_.kill();
    return {};
  }

  void hear_signals(int heard) {
    signalfd_siginfo information{};
    while (::read(heard, &information, sizeof(information)) == sizeof(information)) {
      const auto signal = static_cast<int>(information.ssi_signo);
      const bool is_key = signal == SIGINT || signal == SIGQUIT;
      // A terminal's keys reach a program of our session by themselves.
      const bool is_handed_on =
          is_key ? ::getsid(process_.leader()) != ::getsid(0) : signal != SIGCHLD;
      if (is_handed_on) ::kill(process_.leader(), signal);
    }
    process_.take_events();
  }

  void hear_command(SupervisorSocket& control) {
    const std::optional<std::string> command = control.take();
    if (!command) return;
    nlohmann::json answer;
    if (*command == "save") {
      const Status saved = save_now();
      answer = {{"saved", saved.ok()}};
      if (!saved.ok()) answer["reason"] = saved.text();
      if (saved.ok()) answer["took_us"] = ending_.timing.total_us();
      // Who hears that it was saved may restore it in the same moment.
      if (saved.ok()) process_.memory().give_up_lock();
    } else if (command->starts_with("rehearse ")) {
      answer = rehearse(std::atoi(command->c_str() + 9));
    } else {
      answer = {{"reason", "there is no such command"}};
    }
    // A reason may name a file, whose name is any bytes.
    control.answer(answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  static nlohmann::json steps_of(const SaveTiming& timing) {
    nlohmann::json steps = nlohmann::json::array();
    for (const SaveStep& step : timing.steps)
      steps.push_back({{"name", step.name}, {"took_us", step.took_us}});
    return steps;
  }

  nlohmann::json rehearse(int count) {
    is_checked_ = true;  // whoever asks is told
    nlohmann::json timings = nlohmann::json::array();
    count = std::clamp(count, 1, static_cast<int>(kRehearsalsMax));
    for (int i = 0; i < count; ++i) {
      const Result<SaveTiming> timing = rehearse_save(process_);
      if (timing.ok()) {
        timings.push_back(steps_of(timing.value()));
      } else if (timing.status().error_number() != ECANCELED) {  // else hear_power() looks
        return {{"reason", timing.status().text()}};
      }
      process_.take_events();
      ::usleep(kBetweenRehearsalsUs);
      hear_power();
      if (ending_.was_saved) return {{"reason", "the power failed meanwhile"}};
    }
    return {{"rehearsals", timings}};
  }

  static constexpr useconds_t kBetweenRehearsalsUs = 500;  // the program gets to its work

  Process& process_;
  PowerSources& power_;
  SupervisorEars& ears_;
  double window_us_;
  const Process::Tell& tell_;
  const StepHook& hook_;
  SupervisionEnding ending_;
  bool is_checked_ = false;
  int stop_tries_ = 0;
  Clock::time_point check_at_ = Clock::now() + kCheckAfter;
};

}  // namespace

Result<SupervisorEars> open_ears(const OwnDirectory& directory, const PowerSourceOptions& places) {
  const sigset_t signals = supervised_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  Result<PowerSources> power = PowerSources::open(places);
  if (!power.ok()) return power.status();
  Descriptor heard(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!heard.valid()) return FailedCall{errno, "cannot hear signals"};
  Result<SupervisorSocket> control = SupervisorSocket::open(directory);
  if (!control.ok()) return control.status();
  return SupervisorEars{std::move(power.value()), std::move(heard), std::move(control.value())};
}

Result<SupervisionEnding> supervise(Process& process, SupervisorEars& ears, double window_us,
                                    const Process::Tell& tell, const StepHook& hook) {
  return Supervision(process, ears, window_us, tell, hook).run();
}

}  // namespace pawl::wsp
