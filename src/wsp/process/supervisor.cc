#include "wsp/process/supervisor.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "wsp/process/control.h"

namespace pawl::wsp {

namespace {

sigset_t supervised_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT})
    ::sigaddset(&signals, signal);
  return signals;
}

class Supervision {
 public:
  Supervision(Process& process, PowerSources& power, const Process::Tell& tell,
              const StepHook& hook)
      : process_(process), power_(power), tell_(tell), hook_(hook) {}

  Result<SupervisionEnding> run() {
    Result<SupervisorSocket> control = SupervisorSocket::open(process_.memory().directory());
    if (!control.ok()) return control.status();
    const sigset_t signals = supervised_signals();
    const Descriptor heard(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!heard.valid()) return Status::from_errno(errno, "cannot hear signals");
    process_.set_urgent([this] {
      pollfd source{power_.descriptor(), POLLIN, 0};
      return ::poll(&source, 1, 0) > 0;
    });
    process_.resume_all();
    process_.take_events();
    while (!process_.has_ended() && !ending_.was_saved) {
      pollfd sources[] = {{power_.descriptor(), POLLIN, 0},
                          {heard.get(), POLLIN, 0},
                          {control.value().descriptor(), POLLIN, 0}};
      if (::poll(sources, 3, -1) < 0 && errno != EINTR)
        return Status::from_errno(errno, "cannot wait for what happens");
      // The power first: it does not wait.
      if (sources[0].revents != 0) {
        hear_power();
        if (!ending_.was_saved) process_.take_events();  // it was more urgent
      }
      if (sources[1].revents != 0) hear_signals(heard.get());
      if (sources[2].revents != 0 && !ending_.was_saved) hear_command(control.value());
    }
    process_.set_urgent({});
    ending_.program = process_.ending();
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

  Status save_now() {
    Result<SaveTiming> saved = save(process_, hook_);
    if (!saved.ok()) {
      if (!process_.has_ended()) tell_("not saved: " + saved.status().text());
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
      if (signal == SIGTERM || signal == SIGHUP) ::kill(process_.leader(), signal);
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
    } else if (command->starts_with("rehearse ")) {
      answer = rehearse(std::atoi(command->c_str() + 9));
    } else {
      answer = {{"reason", "there is no such command"}};
    }
    control.answer(answer.dump());
  }

  nlohmann::json rehearse(int count) {
    nlohmann::json timings = nlohmann::json::array();
    count = std::clamp(count, 1, static_cast<int>(kRehearsalsMax));
    for (int i = 0; i < count; ++i) {
      Result<SaveTiming> timing = rehearse_save(process_);
      if (!timing.ok()) return {{"reason", timing.status().text()}};
      nlohmann::json steps = nlohmann::json::array();
      for (const SaveStep& step : timing.value().steps)
        steps.push_back({{"name", step.name}, {"took_us", step.took_us}});
      timings.push_back(steps);
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
  const Process::Tell& tell_;
  const StepHook& hook_;
  SupervisionEnding ending_;
};

}  // namespace

void block_supervised_signals() {
  const sigset_t signals = supervised_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
}

Result<SupervisionEnding> supervise(Process& process, PowerSources& power,
                                    const Process::Tell& tell, const StepHook& hook) {
  return Supervision(process, power, tell, hook).run();
}

}  // namespace pawl::wsp
