#include "wsp/vm/supervisor.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "wsp/budget/save_budget.h"
#include "wsp/clock.h"
#include "wsp/power/power_sources.h"
#include "wsp/vm/control.h"
#include "wsp/vm/machine.h"
#include "wsp/vm/next_machine.h"
#include "wsp/vm/options.h"
#include "wsp/vm/saver.h"

namespace pawl::wsp::vm {

namespace {

// A QEMU that was killed needs a moment to give its memory back.
constexpr int kLockMsMax = 5'000;
constexpr int kEndMsMax = 5'000;  // from its last word
constexpr int kGoOnEveryMs = 200;
constexpr const char* kStandsStill = "the guest stands still since a rehearsal: ";
constexpr int kPriority = 20;  // among the real-time ones: any of them goes before all others

std::string milliseconds(double us) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f ms", us / 1000);
  return text.data();
}

// Not to wait for others' work or for pages when the power fails.  Without the privilege it is left
// out, and the rehearsals show what that costs.
void go_first(pid_t qemu) {
  sched_param priority{};
  priority.sched_priority = kPriority;
  ::sched_setscheduler(0, SCHED_RR, &priority);
  // Its main thread, which does what it is told; not those of the guest's processors.
  ::sched_setscheduler(qemu, SCHED_RR, &priority);
  ::mlockall(MCL_CURRENT | MCL_FUTURE);
}

// Texts that are no UTF-8 cannot be kept: a QEMU with others would be started to restore.
bool holds_all_of(const MachineDescription& stored, const MachineDescription& description) {
  const auto same_disk = [](const AddedDisk& one, const AddedDisk& other) {
    return one.path == other.path;
  };
  return stored.qemu == description.qemu && stored.options == description.options &&
         stored.disk_files == description.disk_files &&
         stored.serial_line == description.serial_line &&
         std::equal(stored.added_disks.begin(), stored.added_disks.end(),
                    description.added_disks.begin(), description.added_disks.end(), same_disk);
}

// A raw disk stays one: its guest could write the header of another format into it, and with that
// the name of a file of the host's, which it would read after the next boot.
void know_formats(MachineDescription& description, const MachineDescription& before) {
  for (AddedDisk& disk : description.added_disks) {
    for (const AddedDisk& known : before.added_disks)
      if (known.path == disk.path) disk.format = known.format;
    if (disk.format.empty()) disk.format = format_of_disk(disk.path);
  }
}

Result<Descriptor> open_end_signals() {
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ends, signal);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  Descriptor made(::signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!made.valid()) return FailedCall{errno, "cannot listen for signals"};
  return made;
}

Ending no_save(const Status& reason) {
  return {Ending::What::kQemuFailed, Refusal::kNone,
          "the save failed, and the next start boots cold: " + reason.text()};
}

std::string in_the_way(const Judgement& verdict) {
  if (!verdict.unseen.ok()) return "a save is there: " + verdict.unseen.text();
  if (verdict.is_valid())
    return "a valid save is there; restore it, or throw it away with --discard";
  return std::string("a save is there, which would be refused now: ") + name_of(verdict.refusal) +
         ": " + verdict.reason +
         "; restore what it was saved with, or throw it away with --discard";
}

// One machine's life, once its directory is locked.
class Life {
 public:
  Life(MachineDirectory& directory, const RunOptions& options)
      : directory_(directory), options_(options), failure_(options.fails_at_step) {}

  Result<Ending> live();

 private:
  Result<Ending> begin(MarkerFile& marker, Judgement verdict);
  Result<Ending> restore(MarkerFile& marker, const Judgement& verdict);
  Status has_disks_of(const MachineDescription& description, const Marker& saved);
  Status let_run_on(MarkerFile& marker, std::uint64_t generation);
  Status take_back(MarkerFile& marker, const Marker& restoring, const Status& failure);
  Status end_before_it_runs(MarkerFile& marker, std::uint64_t generation);
  void seal_again(MarkerFile& marker);
  void keep_description(const MachineDescription& watched);
  Result<Ending> boot(MarkerFile& marker, const Judgement& verdict);
  Result<MachineDescription> description_to_boot() const;
  Status start_beside(const MachineDirectory& next, MachineDescription& description,
                      MarkerFile& marker, std::uint64_t generation);
  Status open_sources(const MachineDescription& description);
  Result<Ending> watch();
  Result<Ending> save(std::uint64_t heard_ns, const std::string& why);
  // EINTR when something has to be heard first; what was rehearsed until then counts.
  Status rehearse(std::uint64_t times);
  // Whether there was word of a power failure, now or before.
  bool hear_of_failure();
  bool is_asked_to_end();
  bool has_to_end();
  bool has_ended_by_itself();
  Ending ended();
  void tell(const std::string& sentence) const {
    if (options_.tell) options_.tell(sentence);
  }

  MachineDirectory& directory_;
  const RunOptions& options_;
  FailurePoint failure_;
  std::optional<PowerSources> sources_;
  std::optional<ControlSocket> control_;
  Descriptor end_signals_;
  std::optional<Machine> machine_;
  std::optional<Saver> saver_;
  Rehearsals rehearsals_;
  std::optional<PowerWord> heard_;
  std::optional<Marker> restoring_;  // while the marker says so, and the guest has not run
  bool runs_ = false;  // a guest that was booted does, or is about to: there is no save any more
};

Status Life::open_sources(const MachineDescription& description) {
  Result<PowerSources> sources =
      PowerSources::open({directory_.files().way_to(kPowerPipe), description.serial_line,
                          directory_.path_of(kPowerPipe)});
  if (!sources.ok()) return sources.status();
  sources_.emplace(std::move(sources.value()));
  Result<Descriptor> signals = open_end_signals();
  if (!signals.ok()) return signals.status();
  end_signals_ = std::move(signals.value());
  Result<ControlSocket> control = ControlSocket::open(directory_);
  if (!control.ok()) return control.status();
  control_.emplace(std::move(control.value()));
  return {};
}

Result<Ending> Life::live() {
  Result<MarkerFile> marker = MarkerFile::open(directory_);
  if (!marker.ok()) return marker.status();
  JudgementOptions asked;
  asked.trusts_memory = options_.trusts_memory;
  asked.wanted = options_.description.has_value() ? &*options_.description : nullptr;
  Result<Judgement> verdict = judge(directory_, marker.value(), asked);
  if (!verdict.ok()) return verdict.status();
  return begin(marker.value(), std::move(verdict.value()));
}

Result<Ending> Life::begin(MarkerFile& marker, Judgement verdict) {
  const bool restores =
      options_.beginning == Beginning::kRestore || options_.beginning == Beginning::kRestoreOrBoot;
  if (verdict.refusal == Refusal::kNewerFormat)
    return Ending{Ending::What::kRefused, verdict.refusal, verdict.reason};
  if (restores && !verdict.unseen.ok()) return verdict.unseen;
  if (restores && verdict.is_valid()) {
    Result<Ending> ending = restore(marker, verdict);
    if (restoring_.has_value() && verdict.marker.state == MarkerState::kSealed) seal_again(marker);
    if (!ending.ok() || ending.value().what != Ending::What::kRefused) return ending;
    verdict.refusal = ending.value().refusal;
    verdict.reason = ending.value().reason;
  }
  if (options_.beginning == Beginning::kRestore)
    return Ending{Ending::What::kRefused, verdict.refusal, verdict.reason};
  if (options_.beginning == Beginning::kBoot && verdict.is_whole())
    return Ending{Ending::What::kSaveInTheWay, verdict.refusal, in_the_way(verdict)};
  if (verdict.refusal != Refusal::kNone)
    tell("booting cold: " + std::string(name_of(verdict.refusal)) + ": " + verdict.reason);
  Result<Ending> ending = boot(marker, verdict);
  if (ending.ok() || runs_) return ending;
  // The guest did not run, and nothing of what was there has changed.
  saver_.reset();
  machine_.reset();
  forget_next(directory_);
  if (!verdict.is_whole()) return ending;
  return ending.status().with_text(ending.status().text() +
                                   " (the save that is there stays as it is)");
}

Result<Ending> Life::restore(MarkerFile& marker, const Judgement& verdict) {
  const MachineDescription& description = *verdict.description;
  const std::uint64_t generation = verdict.marker.generation + 1;
  failure_.reach(Step::kRestoreBegins, 0);
  // The machine is that of the save; what watches it is what is asked for now.
  MachineDescription watched = description;
  if (options_.description.has_value()) {
    watched.window_ms = options_.description->window_ms;
    watched.serial_line = options_.description->serial_line;
  }
  PAWL_TRY(open_sources(watched));
  Result<DeviceStateFile> state = DeviceStateFile::open_saved(directory_);
  if (!state.ok()) return state.status();
  // From here on the memory is mapped: its times say nothing any more, if all of this dies.
  Marker restoring = verdict.marker;
  restoring.state = MarkerState::kRestoring;
  PAWL_TRY(marker.write(restoring));
  restoring_ = restoring;
  failure_.reach(Step::kRestoreMarked, 0);
  Result<Machine> machine =
      Machine::start(description, directory_, directory_.lock_descriptor(), Start::kRestored);
  if (!machine.ok()) return machine.status();
  machine_.emplace(std::move(machine.value()));
  failure_.reach(Step::kQemuStarted, machine_->process().number());
  PAWL_TRY(has_disks_of(description, verdict.marker));
  if (machine_->version() != verdict.marker.qemu_version) {
    Ending refused{Ending::What::kRefused, Refusal::kOtherQemu,
                   "QEMU " + verdict.marker.qemu_version + " has saved the machine, and this is " +
                       machine_->version()};
    machine_.reset();
    return refused;
  }
  if (const Status loaded = machine_->load(state.value(), failure_); !loaded.ok()) {
    // One that was killed, or takes too long, has not said that the state is none.
    const bool refused = loaded.error_number() == EBADMSG || has_ended_by_itself();
    PAWL_TRY(end_before_it_runs(marker, generation));
    machine_.reset();
    if (!refused) {
      return loaded.prefixed("QEMU did not load the save, which stays valid: ");
    }
    return Ending{Ending::What::kRefused, Refusal::kLoadFailed,
                  "QEMU did not take the device state: " + loaded.text()};
  }
  failure_.reach(Step::kLoaded, machine_->process().number());
  Result<Saver> saver = Saver::open(directory_, marker, *machine_, description, generation,
                                    verdict.marker.description_checksum);
  if (saver.ok()) saver_.emplace(std::move(saver.value()));
  const Status prepared = saver.ok() ? saver_->hand_over() : saver.status();
  if (!prepared.ok()) {
    PAWL_TRY(end_before_it_runs(marker, generation));
    return prepared;
  }
  // The guest could run only to be saved again.
  if (is_asked_to_end()) {
    PAWL_TRY(end_before_it_runs(marker, generation));
    tell("the power fails, or this is to end: the guest did not run on, and the save stays valid");
    return Ending{Ending::What::kSaved, Refusal::kNone, ""};
  }
  if (const Status runs = let_run_on(marker, generation); !runs.ok())
    return take_back(marker, restoring, runs);
  failure_.reach(Step::kGuestRuns, machine_->process().number());
  tell("restored: the guest runs on (generation " + std::to_string(generation) + ")");
  if (const Status forgot = saver_->forget_earlier(); !forgot.ok()) tell(forgot.text());
  if (text_of(watched) != text_of(description)) keep_description(watched);
  return watch();
}

// Names in options of QEMU's may be those of other files elsewhere; and whoever may write one of a
// disk's directories may have changed what its name leads to since the save was judged.
Status Life::has_disks_of(const MachineDescription& description, const Marker& saved) {
  const Result<std::vector<std::string>> disks = machine_->disk_files();
  if (!disks.ok()) return disks.status();
  if (disks.value() != description.disk_files || disks.value().size() != saved.disks.size()) {
    return Status::failure(ENOENT,
                           "QEMU has opened other disks than those that were saved: restore from "
                           "the directory in which the machine was booted (the save stays valid)");
  }
  for (std::size_t i = 0; i < saved.disks.size(); ++i) {
    const Result<FileIdentity> disk = machine_->identify_disk(disks.value()[i]);
    if (!disk.ok()) return disk.status();
    if (!disk.value().is_same_file(saved.disks[i])) {
      return Status::failure(ESTALE, disks.value()[i] +
                                         " was replaced by another file while the machine was "
                                         "restored (the save stays valid)");
    }
  }
  return {};
}

Status Life::let_run_on(MarkerFile& marker, std::uint64_t generation) {
  restoring_.reset();
  PAWL_TRY(marker.clear(generation));
  failure_.reach(Step::kMarkerCleared, machine_->process().number());
  return machine_->go_on();
}

// A guest that has not run at all is as it was saved.  One that a monitor of the user's has let run
// on meanwhile is not, whatever the marker says.
Status Life::end_before_it_runs(MarkerFile& marker, std::uint64_t generation) {
  machine_->process().kill_now();
  machine_->process().wait();
  if (!machine_->has_run_on()) return {};
  restoring_.reset();
  PAWL_TRY(marker.clear(generation));
  return Status::failure(ESTALE,
                         "somebody has let the guest run on while it was restored, and the save is "
                         "gone");
}

Status Life::take_back(MarkerFile& marker, const Marker& restoring, const Status& failure) {
  machine_->process().kill_now();
  machine_->process().wait();
  if (machine_->has_run_on()) return failure;
  PAWL_TRY(marker.write(restoring));
  restoring_ = restoring;
  return failure.prefixed("the guest did not run on, and the save stays valid: ");
}

// A restore that came to nothing has mapped the memory: others who do are to be noticed again.
void Life::seal_again(MarkerFile& marker) {
  machine_.reset();
  Status sealed = seal_memory(directory_, *restoring_);
  if (sealed.ok()) sealed = marker.write(*restoring_);
  if (!sealed.ok()) tell("the save is valid, but " + sealed.text());
}

void Life::keep_description(const MachineDescription& watched) {
  Status kept = write_description(watched, directory_);
  if (kept.ok()) {
    Result<StoredDescription> stored = read_description(directory_);
    if (stored.ok()) saver_->describe(stored.value().checksum);
    kept = stored.ok() ? directory_.sync() : stored.status();
  }
  if (!kept.ok()) tell(kept.text());
}

Result<MachineDescription> Life::description_to_boot() const {
  Result<StoredDescription> stored = read_description(directory_);
  if (!options_.description.has_value() && !stored.ok()) {
    return Status::failure(EINVAL, "there is no machine to boot: name its options behind '--' (" +
                                       stored.status().text() + ")");
  }
  const MachineDescription before =
      stored.ok() ? std::move(stored.value().description) : MachineDescription();
  MachineDescription description = options_.description.value_or(before);
  settle_requests(description);
  know_formats(description, before);
  return description;
}

// All that can fail is done beside what was saved: that stays as it is.
Status Life::start_beside(const MachineDirectory& next, MachineDescription& description,
                          MarkerFile& marker, std::uint64_t generation) {
  PAWL_TRY(open_sources(description));
  Result<Machine> machine =
      Machine::start(description, next, directory_.lock_descriptor(), Start::kCold);
  if (!machine.ok()) return machine.status();
  machine_.emplace(std::move(machine.value()));
  Result<std::vector<std::string>> disks = machine_->disk_files();
  if (!disks.ok()) return disks.status();
  description.disk_files = disks.value();
  PAWL_TRY(write_description(description, next));
  Result<StoredDescription> stored = read_description(next);
  if (!stored.ok()) return stored.status();
  if (!holds_all_of(stored.value().description, description)) {
    return Status::failure(ENOTSUP,
                           "this machine cannot be saved: an option or a path is not UTF-8");
  }
  Result<Saver> saver =
      Saver::open(next, marker, *machine_, description, generation, stored.value().checksum);
  if (!saver.ok()) return saver.status();
  saver_.emplace(std::move(saver.value()));
  PAWL_TRY(saver_->prepare());
  // The first, before the guest runs: a machine that cannot be saved is not begun.
  if (const Result<SaveTiming> first = saver_->try_save(); !first.ok())
    return Status::failure(ENOTSUP, "this machine cannot be saved: " + first.status().text());
  return saver_->reserve();
}

Result<Ending> Life::boot(MarkerFile& marker, const Judgement& verdict) {
  const std::uint64_t generation = verdict.marker.generation + 1;
  Result<MachineDescription> description = description_to_boot();
  if (!description.ok()) return description.status();
  const Result<StoredDescription> before = read_description(directory_);
  const bool is_another =
      !before.ok() || !before.value().description.is_same_machine(description.value());
  // Without a save, nobody misses the memory, and its space is needed.
  if (!verdict.is_whole()) ::unlinkat(directory_.descriptor(), kMemoryFile, 0);
  const Result<MachineDirectory> next = make_next(directory_);
  if (!next.ok()) return next.status();
  PAWL_TRY(make_next_memory(directory_, next.value(), description.value().memory_bytes));
  PAWL_TRY(start_beside(next.value(), description.value(), marker, generation));
  // Before anything of the old save is touched, it is none any more.
  PAWL_TRY(marker.clear(generation));
  runs_ = true;
  if (is_another) Rehearsals::forget(directory_.files());
  PAWL_TRY(take_place(directory_, next.value(), description.value().memory_bytes));
  saver_->memory_is_in(directory_);
  PAWL_TRY(saver_->go_on());
  tell("runs (generation " + std::to_string(generation) + ")");
  return watch();
}

bool Life::hear_of_failure() {
  if (heard_.has_value()) return true;
  Result<std::optional<PowerWord>> word = sources_->listen();
  if (!word.ok())
    tell(word.status().text());
  else
    heard_ = word.value();
  return heard_.has_value();
}

// Whether there is word of a power failure, or of an end that is wished.
bool Life::is_asked_to_end() {
  pollfd wanted{end_signals_.get(), POLLIN, 0};
  return hear_of_failure() || ::poll(&wanted, 1, 0) > 0;
}

// Or of QEMU's end.
bool Life::has_to_end() {
  pollfd wanted{machine_->process().descriptor(), POLLIN, 0};
  return is_asked_to_end() || ::poll(&wanted, 1, 0) > 0;
}

Status Life::rehearse(std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) {
    // A thousand of them take many times the window.  They are written with the save.
    if (has_to_end()) {
      return Status::failure(EINTR, "after " + std::to_string(i) +
                                        " rehearsals: the power fails, or the machine ends");
    }
    Result<SaveTiming> timing = saver_->rehearse();
    if (!timing.ok()) return timing.status();
    rehearsals_.add(std::move(timing.value()));
  }
  return rehearsals_.write(directory_.files());
}

Result<Ending> Life::save(std::uint64_t heard_ns, const std::string& why) {
  if (const Status runs = saver_->go_on_at_last(); !runs.ok())
    return no_save(runs.prefixed(kStandsStill));
  Result<SaveTiming> timing = saver_->save(heard_ns, failure_);
  if (!timing.ok()) return no_save(timing.status());
  const Status sealed = saver_->seal(failure_);
  if (sealed.error_number() == ESTALE) return no_save(sealed);
  const double took_us = timing.value().total_us();
  rehearsals_.add(std::move(timing.value()));
  const Status kept = rehearsals_.write(directory_.files());
  tell("saved in " + milliseconds(took_us) + " (" + why + ")");
  for (const Status& status : {sealed, kept})
    if (!status.ok()) tell("the save is valid, but " + status.text());
  return Ending{Ending::What::kSaved, Refusal::kNone, ""};
}

bool Life::has_ended_by_itself() {
  pollfd wanted{machine_->process().descriptor(), POLLIN, 0};
  return ::poll(&wanted, 1, kEndMsMax) > 0 && WIFEXITED(machine_->process().wait());
}

Ending Life::ended() {
  // One that has only closed its line does not answer any more, and may go on for ever.
  pollfd wanted{machine_->process().descriptor(), POLLIN, 0};
  if (::poll(&wanted, 1, kEndMsMax) <= 0) machine_->process().kill_now();
  const int status = machine_->process().wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {Ending::What::kGuestEnded, Refusal::kNone,
            "the guest was switched off; nothing was saved"};
  return {Ending::What::kQemuFailed, Refusal::kNone,
          WIFSIGNALED(status) ? "QEMU was ended by signal " + std::to_string(WTERMSIG(status))
                              : "QEMU ended with exit code " + std::to_string(WEXITSTATUS(status))};
}

Result<Ending> Life::watch() {
  go_first(machine_->process().number());
  if (Result<Rehearsals> before = Rehearsals::read(directory_.files()); before.ok())
    rehearsals_ = std::move(before.value());
  else
    tell(before.status().text());
  if (const Status rehearsed = rehearse(options_.rehearsals);
      !rehearsed.ok() && rehearsed.error_number() != EINTR)
    return rehearsed;
  std::array<pollfd, 5> wanted{pollfd{sources_->descriptor(), POLLIN, 0},
                               pollfd{end_signals_.get(), POLLIN, 0},
                               pollfd{control_->descriptor(), POLLIN, 0},
                               pollfd{machine_->process().descriptor(), POLLIN, 0},
                               pollfd{machine_->qmp().descriptor(), POLLIN, 0}};
  for (;;) {
    const int wait_ms = saver_->stands_still() ? kGoOnEveryMs : -1;
    if (!heard_.has_value() && ::poll(wanted.data(), wanted.size(), wait_ms) < 0 && errno != EINTR)
      return FailedCall{errno, "cannot wait for a power failure"};
    if (hear_of_failure())
      return save(heard_->heard_ns, std::string("power failure, by ") + name_of(heard_->source));
    if (wanted[1].revents != 0) return save(monotonic_ns(), "asked to end by a signal");
    if (wanted[3].revents != 0) return ended();
    if (wanted[4].revents != 0 && !machine_->qmp().hear().ok()) return ended();
    // Events are for those who wait for them, and nobody does here.
    machine_->qmp().forget_events();
    if (saver_->stands_still() && saver_->go_on_at_last().ok()) tell("the guest runs on");
    if (wanted[2].revents == 0) continue;
    Result<ControlSocket::Asked> asked =
        control_->accept(sources_->descriptor(), [this] { return hear_of_failure(); });
    if (!asked.ok()) continue;
    if (asked.value().request.what == ControlRequest::What::kSave) {
      Result<Ending> ending = save(monotonic_ns(), "asked to");
      const bool saved = ending.ok() && ending.value().what == Ending::What::kSaved;
      answer_request(asked.value().line, saved ? "" : ending.value().reason);
      return ending;
    }
    const Status rehearsed = rehearse(asked.value().request.times);
    answer_request(asked.value().line, rehearsed.text());
  }
}

}  // namespace

Result<Ending> run_machine(MachineDirectory& directory, const RunOptions& options) {
  PAWL_ASSERT(options.rehearsals <= kRehearsalsMax);
  PAWL_TRY(refuse_a_programs(directory.files()));
  PAWL_TRY(directory.lock(kLockMsMax));
  return Life(directory, options).live();
}

Result<Trial> try_machine(MachineDirectory& directory, const MachineDescription& description) {
  PAWL_TRY(directory.lock(0));
  PAWL_TRY(make_memory(directory, description.memory_bytes));
  Result<MarkerFile> marker = MarkerFile::open(directory);
  if (!marker.ok()) return marker.status();
  PAWL_TRY(marker.value().clear(1));
  MachineDescription settled = description;
  settle_requests(settled);
  Result<Machine> machine =
      Machine::start(settled, directory, directory.lock_descriptor(), Start::kCold);
  if (!machine.ok()) return machine.status();
  Result<std::vector<std::string>> disks = machine.value().disk_files();
  if (!disks.ok()) return disks.status();
  settled.disk_files = disks.value();
  Result<Saver> saver = Saver::open(directory, marker.value(), machine.value(), settled, 1, 0);
  if (!saver.ok()) return saver.status();
  PAWL_TRY(saver.value().prepare());
  // Not rehearse(), which would let the guest run.
  Result<SaveTiming> timing = saver.value().save(monotonic_ns(), FailurePoint());
  if (!timing.ok()) return timing.status();
  return Trial{machine.value().version(), disks.value(), timing.value().total_us()};
}

}  // namespace pawl::wsp::vm
