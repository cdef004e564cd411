#include "crash/program.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "crash/repeatable.h"
#include "journal/format.h"
#include "medium/persistent_copy.h"
#include "track/store_marks.h"

namespace pawl::test {
namespace {

constexpr std::uint64_t kGrowthBytes = 5000;

// One file of the program.
class Program {
 public:
  Program(const RunOptions& options, Recorder& recorder, std::uint16_t volume,
          const StoredDisk& start, const Content& content)
      : options_(options),
        recorder_(recorder),
        volume_(volume),
        seed_(options.seed * 31 + volume),
        random_(seed_),
        disk_(start, {.backing = options.is_memory ? Backing::mapped : Backing::memory_file,
                      .can_mark = options.can_mark,
                      .file_bytes_max = options.journal_bytes_max,
                      .block_bytes = options.is_memory ? kMemoryLineBytes : kPageBytes}),
        script_(std::in_place, *options.workload, seed_, content) {
    settle(content);
  }

  bool over() const { return dead_ || !wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

  void open() {
    if (options_.other_writer) grow_unflushed();
    Status status = try_open();
    if (may_try_again(status)) {
      recorder_.mend();
      status = try_open();
      if (!status.ok() && status.error_number() != EIO)
        return fail("tried again, the file is refused: " + status.text());
    }
    if (!status.ok()) return meet(status, "to open the file");
    // What another program left in it is the first committed content, and durable.
    if (options_.other_writer) acknowledge(script_->model().committed());
    check_memory("when the file is opened");
  }

  void step() {
    // Not on a disk that has failed: until the machine starts anew, what is read from it may stand
    // in memory only, and nobody can tell (docs/reliability.md).
    const bool disk_failed = fault_happened() && !is_mere_want_of_space();
    if (below(random_, options_.steps) == 0 && !disk_failed) return start_again();
    const FileModel before = script_->model();
    Step step = script_->next();
    if (step.kind == Step::Kind::store) {
      std::memcpy(subject_->bytes() + step.offset, step.bytes.data(), step.bytes.size());
      note_stored(subject_->bytes() + step.offset, step.bytes.size());
      subject_->idle();
      return;
    }
    if (step.commits() && options_.touch_all_pages) touch_all_pages();
    Status status = perform(step);
    if (may_try_again(status)) {
      told_ = true;
      if (step.kind != Step::Kind::roll_back) check_memory("after an error that is not final");
      recorder_.mend();
      if (over()) return;
      const std::string first = status.text();
      if (step.commits()) step = try_instead(step, before);
      status = perform(step);
      if (!status.ok() && status.error_number() != EIO)
        return fail("tried again it fails: " + status.text());
      if (!status.ok() && !was_queued_)
        return fail("after an error that is not final (" + first +
                    ") nothing may be tried again: " + status.text());
    }
    if (!status.ok()) return meet(status, "to take a step");
    if (step.acknowledges() && !is_flushed_later(step)) acknowledge(script_->model().committed());
    check_memory("after a step");
    share_blocks_after(step);
  }

  // The end of the program: it closes the file, or not.
  void finish() {
    if (!over() && (options_.fault.error_number != 0 || below(random_, 2) == 0)) close();
    subject_.reset();
  }
  bool was_told() const { return told_; }

 private:
  // Another program has just made the file longer, and did not flush it.
  void grow_unflushed() {
    Content grown = script_->model().now();
    grown.resize(std::min(grown.size() + kGrowthBytes, options_.subject.window_pages * kPageBytes));
    const auto medium = recorder_.record(disk_.open(), volume_);
    last_number_ = recorder_.begin_commit(volume_, grown);
    if (!medium->base().resize(grown.size()).ok()) return fail("the file cannot grow");
    script_.emplace(*options_.workload, seed_, std::move(grown));
  }

  // The program ends, or is killed, and is started again, while the disk goes on.
  void start_again() {
    if (below(random_, 3) == 0) close();
    if (over()) return;
    recorder_.kill(volume_);
    subject_.reset();
    if (fault_happened() && !is_mere_want_of_space()) {
      dead_ = told_ = true;  // there is nobody left to tell
      return;
    }
    Status status = try_open();
    if (may_try_again(status)) {
      recorder_.mend();
      status = try_open();
    }
    if (!status.ok()) return meet(status, "to open the file again");
    Content found;
    found.write(0, std::as_bytes(std::span(subject_->bytes(), subject_->size())));
    found.resize(subject_->size());
    const bool known = std::any_of(
        in_flight_.begin(), in_flight_.end(),
        [&](const Content& content) { return !content.first_difference(found).has_value(); });
    if (!known) {
      std::string what = "started again, it finds a file that is no commit's; it differs";
      for (const Content& content : in_flight_)
        what += " at byte " + std::to_string(found.first_difference(content).value_or(0));
      return fail(what);
    }
    seed_ += 1;
    script_.emplace(*options_.workload, seed_, found);
    settle(found);
  }

  // From here on it is this content, and no other.
  void settle(const Content& content) {
    last_number_ = recorder_.begin_commit(volume_, content);
    acknowledge(content);
  }
  void acknowledge(const Content& content) {
    recorder_.acknowledge(volume_, last_number_);
    in_flight_ = {content};
    was_queued_ = false;
  }

  Status try_open() {
    recorder_.expect_space(volume_, false);
    auto opened = open_subject(recorder_.record(disk_.open(), volume_), options_.subject);
    if (opened.ok()) subject_ = std::move(opened.value());
    recorder_.expect_space(volume_, opened.ok() && !options_.subject.plain);
    return opened.status();
  }

  Status perform(const Step& step) {
    std::uint64_t number = last_number_;
    if (step.commits()) {
      number = recorder_.begin_commit(volume_, script_->model().committed());
      in_flight_.push_back(script_->model().committed());
    }
    const Status status = call(step);
    // Nothing was written: whatever fails later is final.
    if (step.commits() && may_try_again(status)) {
      recorder_.refuse(volume_, number);
      in_flight_.pop_back();
    }
    last_number_ = number;
    was_queued_ = was_queued_ || step.kind == Step::Kind::queue || is_flushed_later(step);
    return status;
  }

  // A power failure that nobody sees coming takes what on-fail has not flushed.
  bool is_flushed_later(const Step& step) const {
    return step.kind == Step::Kind::commit && !options_.is_memory &&
           options_.subject.pawl.durability == DurabilityChoice::on_fail;
  }

  Status call(const Step& step) {
    switch (step.kind) {
      case Step::Kind::commit:
        return subject_->sync(step.offset, step.length);
      case Step::Kind::queue:
        return subject_->sync_later(step.offset, step.length);
      case Step::Kind::wait:
        return subject_->wait();
      case Step::Kind::roll_back:
        return subject_->roll_back(step.offset, step.length, script_->model().now());
      case Step::Kind::truncate:
        return subject_->truncate(step.length);
      case Step::Kind::store:
        break;
    }
    return {};
  }

  // The same bytes again.
  void touch_all_pages() {
    auto* const bytes = reinterpret_cast<volatile char*>(subject_->bytes());
    for (std::uint64_t at = 0; at < script_->model().size(); at += kPageBytes) {
      const char same = bytes[at];
      bytes[at] = same;
      note_stored(subject_->bytes() + at, 1);
    }
  }

  void close() {
    const Status status = subject_->close();
    if (!status.ok()) return meet(status, "to close the file");
    acknowledge(script_->model().committed());
    if (options_.subject.plain) return;  // what was not committed is in the file, too
    const StoredDisk disk = disk_.state();
    if (disk.base.first_difference(script_->model().committed()).has_value())
      fail("after a clean close the file is not what was committed");
    if (disk.journal.has_value() || disk.mark.has_value())
      fail("after a clean close there is still a journal, or a mark");
  }

  // A call has failed for good.
  void meet(const Status& status, const std::string& what) {
    const std::string failed = "it fails " + what + ": " + status.text();
    if (!fault_happened()) return fail(failed + " (though the disk has not)");
    if (status.text().empty()) return fail("it fails " + what + " without a text");
    told_ = true;
    dead_ = true;
    if (options_.fault.error_number == EIO && status.error_number() != EIO)
      return fail(failed + " (and not as EIO)");
    if (subject_ == nullptr || status.error_number() != EIO) return;
    recorder_.mend();
    const Status again = subject_->sync(0, options_.subject.window_pages * kPageBytes);
    if (again.ok()) fail("a commit is taken after EIO");
    if (again.text().empty()) fail("a commit is refused without a text");
  }

  // The program sees its own stores.
  void check_memory(const std::string& when) {
    const Content& now = script_->model().now();
    if (subject_->size() != now.size()) return fail("in memory the size is not its own " + when);
    std::vector<std::byte> wanted(now.size());
    now.read(0, wanted);
    if (!wanted.empty() && std::memcmp(wanted.data(), subject_->bytes(), wanted.size()) != 0)
      fail("in memory stores are missing " + when);
  }

  bool may_try_again(const Status& status) const {
    return !status.ok() && status.error_number() != EIO && fault_happened();
  }
  // Which leaves a disk that can be read as before.
  bool is_mere_want_of_space() const {
    return options_.fault.error_number == ENOSPC && options_.fault.done == Fault::Done::nothing;
  }

  // The same commit again, or a smaller one, or a larger one.
  Step try_instead(const Step& failed, const FileModel& before) {
    constexpr std::uint64_t kMoreBytes = 3 * kPageBytes;
    const PageRun pages{failed.offset / kPageBytes, failed.length / kPageBytes};
    switch (below(random_, 3)) {
      case 0:
        return failed;
      case 1: {
        const PageRun one{pages.first + below(random_, pages.count), 1};
        return script_->instead(failed, before, 0, {}, one);
      }
      default: {
        const std::uint64_t size = before.size();
        const std::uint64_t at = size == 0 ? 0 : below(random_, size);
        const auto bytes = random_bytes(random_, std::min(kMoreBytes, size - at));
        if (!bytes.empty()) {
          std::memcpy(subject_->bytes() + at, bytes.data(), bytes.size());
          note_stored(subject_->bytes() + at, bytes.size());
        }
        return script_->instead(failed, before, at, bytes, {0, options_.subject.window_pages});
      }
    }
  }

  // Only when all that was committed stands in the base: what waits for its way there may need
  // space until the next commit sees the copy.
  void share_blocks_after(const Step& step) {
    constexpr unsigned kShareEvery = 6;
    const bool all_is_applied = step.kind == Step::Kind::commit && !was_queued_ &&
                                options_.subject.pawl.apply == ApplyChoice::eager;
    if (all_is_applied && !options_.is_memory && !options_.subject.plain && !fault_happened() &&
        below(random_, kShareEvery) == 0)
      recorder_.share(volume_);
  }

  bool fault_happened() const { return recorder_.failed_before().has_value(); }
  void fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = "volume " + std::to_string(volume_) + ": " + what;
  }

  const RunOptions& options_;
  Recorder& recorder_;
  const std::uint16_t volume_;
  unsigned seed_;
  Random random_;
  MemoryDisk disk_;
  std::optional<Script> script_;
  std::unique_ptr<Subject> subject_;
  std::uint64_t last_number_ = 0;
  std::vector<Content> in_flight_;  // may be found: the last acknowledged, and those begun since
  bool was_queued_ = false;         // some batch may still be on its way
  bool dead_ = false;
  bool told_ = false;
  std::string wrong_;
};

bool is_all_zeros(const std::vector<std::byte>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{}; });
}

// A write of the user's file, or of the journal's header, that fails in the background may be done
// again, and flushed; a flush may not, nor what a commit waits for.  Zeros are of no commit: the
// ring does not grow then.
bool must_be_told(const Trace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    if (event.kind == Event::Kind::flush_fails) return true;
    return event.kind == Event::Kind::write && event.failed && event.file >= trace.volumes.size() &&
           event.offset >= journal::kAreaStart && !is_all_zeros(*event.bytes);
  });
}

}  // namespace

Run run_program(const RunOptions& options, const std::vector<StoredDisk>& start,
                const std::vector<Content>& contents) {
  repeat_from(options.seed);
  Recorder recorder(start, options.can_mark, options.seed, options.pauses, options.is_memory);
  recorder.fail(options.fault);
  Random random(options.seed);
  std::vector<std::unique_ptr<Program>> programs;
  for (std::uint16_t volume = 0; volume < start.size(); ++volume)
    programs.push_back(
        std::make_unique<Program>(options, recorder, volume, start[volume], contents[volume]));
  const auto any_over = [&] {
    return std::any_of(programs.begin(), programs.end(),
                       [](const auto& program) { return program->over(); });
  };
  for (const auto& program : programs) {
    if (!any_over()) program->open();
  }
  for (std::uint64_t i = 0; i < options.steps * programs.size() && !any_over(); ++i)
    programs[below(random, programs.size())]->step();
  for (const auto& program : programs) program->finish();

  Run run;
  bool told = false;
  for (const auto& program : programs) {
    if (run.wrong.empty()) run.wrong = program->wrong();
    told = told || program->was_told();
  }
  if (run.wrong.empty()) run.wrong = recorder.wrong();
  run.failed_before = recorder.failed_before();
  run.operations = recorder.operations();
  programs.clear();
  run.trace = recorder.take();
  if (run.wrong.empty() && !told && options.fault.error_number != 0 && must_be_told(run.trace))
    run.wrong = "bytes may have been lost, and the program was not told";
  return run;
}

}  // namespace pawl::test
