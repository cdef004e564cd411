#include "wsp/process/save.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>

#include "wsp/process/capture.h"
#include "wsp/process/directory_check.h"
#include "wsp/process/ended_connection.h"
#include "wsp/process/file_check.h"
#include "wsp/process/image.h"
#include "wsp/process/one_processor.h"
#include "wsp/process/records.h"
#include "wsp/process/spare_numbers.h"
#include "wsp/process/urgency.h"

namespace pawl::wsp {

namespace {

// How far the work is done.
enum class SaveExtent { image, flushed, marked };

// Steps, as the operator reads them.
constexpr const char* kStopping = "stop the threads";
constexpr const char* kThreads = "registers and signals";
constexpr const char* kMappings = "mappings";

// How long the other threads stand still for one that does not stop, where nobody has asked.
constexpr std::chrono::milliseconds kCheckQuietMax{100};
// For the file systems of the program's directory and files, while no failure of the power is
// heard.
constexpr std::chrono::milliseconds kTriedServerMax{1000};

class SaveRun {
 public:
  SaveRun(Process& process, const StepHook* hook, SaveExtent extent)
      : process_(process),
        hook_(hook),
        extent_(extent),
        urgency_(extent == SaveExtent::image ? Urgency() : Urgency(process.threads())) {}

  Status run() {
    KeptMemory& memory = process_.memory();
    ImageWriter writer(memory.image(), memory.generation(), memory.inode());
    const bool gives_way = extent_ != SaveExtent::marked;
    const auto quiet_max = extent_ == SaveExtent::image ? kCheckQuietMax : Process::kStopTimeMax;
    PAWL_TRY(step(kStopping, [&] {
      Status done = process_.stop_all(quiet_max, gives_way);
      for (const auto& [thread, maker] : process_.made_meanwhile()) urgency_.adopt(thread, maker);
      return done;
    }));
    is_stopped_ = true;
    PAWL_TRY(step(kThreads, [&] {
      one_processor_.emplace(process_.threads());
      Status done = capture_threads(process_, gives_way, saved_);
      if (done.ok()) capture_scheduling(urgency_, *one_processor_, saved_);
      return done;
    }));
    PAWL_TRY(step(kMappings, [&] { return capture_mappings(process_, gives_way, saved_); }));
    PAWL_TRY(step("descriptors", [&] { return capture_descriptors(process_, gives_way, saved_); }));
    PAWL_TRY(step("write the image", [&] {
      write_records(writer, saved_);
      Status named = memory.check_names();
      return named.ok() ? writer.finish() : named;
    }));
    if (extent_ == SaveExtent::image) return {};
    PAWL_TRY(step("flush the memory", [&] { return memory.flush_memory(); }));
    PAWL_TRY(step("flush the image", [&] { return memory.flush_image(); }));
    if (extent_ == SaveExtent::flushed) return {};
    return step("mark", [&] {
      PAWL_TRY(memory.check_names());
      is_marked_ = true;
      writer.mark();
      return memory.flush_image();
    });
  }

  void let_run_on() {
    if (!is_stopped_) return;
    const bool are_attached = attach_threads(process_, saved_).ok();
    one_processor_.reset();
    if (!are_attached) return;
    urgency_.end_for_threads();
    process_.resume_all();
  }

  void release_addresses() const { wsp::release_addresses(process_.leader(), saved_); }

  const SavedProcess& saved() const { return saved_; }
  SaveTiming timing() const { return timing_; }
  // Of what the program has that takes most of the time, and how many.
  std::string burden() const {
    const auto is_less = [](const SaveStep& one, const SaveStep& other) {
      return one.took_us < other.took_us;
    };
    const auto slowest = std::max_element(timing_.steps.begin(), timing_.steps.end(), is_less);
    if (slowest->name == kStopping || slowest->name == kThreads)
      return fmt::format("{} threads", saved_.threads.size());
    if (slowest->name == kMappings) return fmt::format("{} mappings", saved_.mappings.size());
    return fmt::format("{} descriptors open", saved_.descriptors.size());
  }
  // Whether the marker was written, and may be durable whatever its flush answered.
  bool is_marked() const { return is_marked_; }

 private:
  template <class Work>
  Status step(const char* name, const Work& work) {
    if (hook_ != nullptr && *hook_) (*hook_)(static_cast<int>(timing_.steps.size()) + 1);
    const auto start = std::chrono::steady_clock::now();
    Status done = work();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    timing_.steps.push_back({name, took.count()});
    return done;
  }

  Process& process_;
  const StepHook* hook_;
  SaveExtent extent_;
  Urgency urgency_;
  std::optional<OneProcessor> one_processor_;
  SavedProcess saved_;
  SaveTiming timing_;
  bool is_stopped_ = false;
  bool is_marked_ = false;
};

// Of a marker that may be durable, before the program runs on: its memory becomes that of another
// generation, or the image is durable without it.
Status take_back_marker(KeptMemory& memory, const Status& failure) {
  if (memory.begin_generation().ok() || memory.flush_image().ok()) return failure;
  return failure.with_text(failure.text() +
                           "; what lies there may be taken for a save, which it is "
                           "not: do not restore it");
}

// Of this thread: how long others had the processor is theirs.
double processor_time_us() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

Status foresee_restore(const SavedProcess& saved) {
  PAWL_TRY(check_descriptor_limit(saved));
  PAWL_TRY(foresee_ended_connections(saved));
  PAWL_TRY(check_directory(saved, kTriedServerMax));
  return foresee_files(saved, kTriedServerMax);
}

}  // namespace

Result<SaveTiming> save(Process& process, const StepHook& hook) {
  SaveRun run(process, &hook, SaveExtent::marked);
  if (Status done = run.run(); !done.ok()) {
    KeptMemory& memory = process.memory();
    write_refusal(memory.image(), done.text());
    if (run.is_marked()) done = take_back_marker(memory, done);
    run.let_run_on();
    return done;
  }
  run.release_addresses();
  if (hook) hook(kSaveStepsCount + 1);
  return run.timing();
}

Result<SaveTiming> rehearse_save(Process& process) {
  SaveRun run(process, nullptr, SaveExtent::flushed);
  const Status done = run.run();
  run.let_run_on();
  if (!done.ok()) return done;
  return run.timing();
}

Result<SaveOutlook> check_savable(Process& process) {
  const double before_us = processor_time_us();
  SaveRun run(process, nullptr, SaveExtent::image);
  const Status done = run.run();
  const double took_us = processor_time_us() - before_us;
  run.let_run_on();
  if (!done.ok()) return done;
  SaveOutlook outlook{took_us, run.burden(), {}};
  outlook.restorable = foresee_restore(run.saved());
  // No process could be made to try it (RLIMIT_NPROC, of which a restore gets more), or somebody
  // has a lease: that tells nothing.
  if (outlook.restorable.error_number() == EAGAIN) outlook.restorable = {};
  return outlook;
}

}  // namespace pawl::wsp
