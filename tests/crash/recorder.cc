#include "crash/recorder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "crash/disk_states.h"
#include "medium/persistent_copy.h"
#include "medium/persistent_file.h"
#include "support/observed_memory.h"

namespace pawl::test {
namespace {

using Kind = Event::Kind;

// Some flushes take long enough for much to happen meanwhile, most take none.
constexpr unsigned kFlushMicrosecondsMax = 1500;
constexpr unsigned kSlowFlushEvery = 6;
// Of the file system, for space: smaller than a page, as they may be.
constexpr std::uint64_t kBlockBytes = 1024;

std::shared_ptr<const std::vector<std::byte>> copy_of(std::span<const std::byte> bytes) {
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

}  // namespace

Recorder::Recorder(const std::vector<StoredDisk>& volumes, bool can_mark, unsigned seed,
                   Pauses pauses, bool is_memory)
    : random_(seed),
      pauses_(pauses),
      files_(static_cast<std::uint32_t>(volumes.size())),
      lives_(volumes.size(), 0) {
  trace_.can_mark = can_mark;
  trace_.is_memory = is_memory;
  for (const StoredDisk& disk : volumes) {
    trace_.volumes.push_back({disk, {}});
    journals_.push_back(disk.journal.has_value() ? files_++ : 0);
    space_.push_back({std::vector<bool>((disk.base.size() + kBlockBytes - 1) / kBlockBytes, true),
                      disk.base.size(),
                      false,
                      {}});
  }
}

void Recorder::kill(std::uint16_t volume) {
  const std::lock_guard lock(mutex_);
  lives_[volume] += 1;
}

void Recorder::fail(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
}

std::uint64_t Recorder::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

std::optional<std::size_t> Recorder::failed_before() const {
  const std::lock_guard lock(mutex_);
  return failed_before_;
}

std::uint64_t Recorder::begin_commit(std::uint16_t volume, Content content) {
  const std::lock_guard lock(mutex_);
  std::vector<Content>& commits = trace_.volumes[volume].commits;
  commits.push_back(std::move(content));
  add({.kind = Kind::commit_begins,
       .volume = volume,
       .offset = commits.size() - 1,
       .bytes = {},
       .marked = {}});
  return commits.size() - 1;
}

void Recorder::acknowledge(std::uint16_t volume, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  add({.kind = Kind::acknowledged, .volume = volume, .offset = number, .bytes = {}, .marked = {}});
}

void Recorder::refuse(std::uint16_t volume, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  add({.kind = Kind::refused, .volume = volume, .offset = number, .bytes = {}, .marked = {}});
}

Trace Recorder::take() {
  const std::lock_guard lock(mutex_);
  return std::move(trace_);
}

void Recorder::add(Event event) {
  if (event.file < space_.size() && !event.failed) note_space(event);
  trace_.events.push_back(std::move(event));
}

void Recorder::note_space(const Event& event) {
  Space& space = space_[event.volume];
  const auto set = [&](std::uint64_t first, std::uint64_t end, bool has) {
    if (has && space.blocks.size() < end) space.blocks.resize(end);
    end = std::min<std::uint64_t>(end, space.blocks.size());
    for (std::uint64_t block = first; block < end; ++block) space.blocks[block] = has;
    end = std::min<std::uint64_t>(end, space.shared.size());
    for (std::uint64_t block = first; block < end; ++block) space.shared[block] = false;
  };
  const std::uint64_t first = event.offset / kBlockBytes;
  const std::uint64_t end = (event.end() + kBlockBytes - 1) / kBlockBytes;
  const std::uint64_t size_before = space.size_bytes;
  const bool is_data = event.kind == Kind::write || event.kind == Kind::store;
  if (is_data) space.size_bytes = std::max(size_before, event.end());
  if (event.kind == Kind::resize) space.size_bytes = event.offset;
  switch (event.kind) {
    case Kind::write:
    case Kind::store:
      for (std::uint64_t block = first; block < end; ++block) {
        if (!space.expected || (block < space.blocks.size() && space.blocks[block])) continue;
        wrong_ = "a write of " + std::to_string(event.bytes->size()) + " bytes at " +
                 std::to_string(event.offset) + " needs space that nobody reserved";
      }
      set(first, end, true);
      break;
    case Kind::reserve:
      set(first, end, true);
      break;
    case Kind::resize:
      // What was reserved behind the end stays when the file grows.
      if (event.offset <= size_before)
        set((event.offset + kBlockBytes - 1) / kBlockBytes, ~std::uint64_t{0}, false);
      break;
    case Kind::zero:
      if (event.punches)
        set((event.offset + kBlockBytes - 1) / kBlockBytes, event.end() / kBlockBytes, false);
      else
        set(first, end, true);
      break;
    default:
      break;
  }
}

void Recorder::share(std::uint16_t volume) {
  const std::lock_guard lock(mutex_);
  Space& space = space_[volume];
  // What an earlier copy shares, and nobody wrote since, is shared still.
  space.shared.resize(space.blocks.size());
  for (std::size_t block = 0; block < space.blocks.size(); ++block)
    if (space.blocks[block]) space.shared[block] = true;
  space.blocks.assign(space.blocks.size(), false);
}

void Recorder::expect_space(std::uint16_t volume, bool expected) {
  const std::lock_guard lock(mutex_);
  space_[volume].expected = expected;
}

std::string Recorder::wrong() const {
  const std::lock_guard lock(mutex_);
  return wrong_;
}

Status Recorder::judge(bool takes_space) {
  const std::uint64_t number = operations_++;
  const bool hit = number == fault_.operation || (fault_.lasting && number > fault_.operation);
  const bool is_spared =
      fault_.error_number == ENOSPC && fault_.done == Fault::Done::nothing && !takes_space;
  if (!hit || is_spared) return {};
  if (!failed_before_.has_value()) failed_before_ = trace_.events.size();
  return FailedCall{fault_.error_number, "the simulated disk has failed"};
}

std::uint64_t Recorder::part_done(const Status& answer, std::uint64_t length) const {
  if (answer.ok() || fault_.done == Fault::Done::all) return length;
  return fault_.done == Fault::Done::nothing ? 0 : round_down(length / 2, kSectorBytes);
}

// ------------------------------------------------------------------------------------------ files

class Recorder::File final : public MediumFile {
 public:
  File(Recorder& recorder, std::uint16_t volume, std::uint32_t number, MediumFile& real)
      : recorder_(recorder),
        volume_(volume),
        number_(number),
        life_(recorder.lives_[volume]),
        real_(real) {}
  File(Recorder& recorder, std::uint16_t volume, std::uint32_t number,
       std::unique_ptr<MediumFile> real)
      : recorder_(recorder),
        volume_(volume),
        number_(number),
        life_(recorder.lives_[volume]),
        owned_(std::move(real)),
        real_(*owned_) {}

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    return real_.read(offset, into);
  }

  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    const std::lock_guard lock(recorder_.mutex_);
    Status answer = judge_write(offset, from);
    if (answer.ok()) return record_write(offset, from);
    return answer;
  }

  // Of what was done before it began, all.  The real file need not be flushed.
  Status flush() override {
    std::uint64_t begun = 0;
    std::chrono::microseconds pause{};
    {
      const std::lock_guard lock(recorder_.mutex_);
      if (killed()) return judge(false);
      begun = recorder_.trace_.events.size();
      add({.kind = Kind::flush_begins, .bytes = {}, .marked = {}});
      pause = pause_of_flush();
    }
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const std::lock_guard lock(recorder_.mutex_);
    if (killed()) return judge(false);
    Status judged = judge(false);
    const bool is_done = judged.ok() || recorder_.fault_.done == Fault::Done::all;
    add({.kind = is_done ? Kind::flush_ends : Kind::flush_fails,
         .offset = begun,
         .bytes = {},
         .marked = {}});
    // As a medium says it.
    return judged.ok() ? judged : Status::failure(EIO, judged.text());
  }

  // Durable by itself: what else was written to the file may not be (as with RWF_DSYNC).
  Status write_durably(std::uint64_t offset, std::span<const std::byte> from) override {
    std::uint64_t written = 0;
    std::chrono::microseconds pause{};
    bool late = false;
    {
      const std::lock_guard lock(recorder_.mutex_);
      if (killed()) return judge(false);
      late = recorder_.fault_.late;
      if (!late) {
        const std::uint64_t before = recorder_.trace_.events.size();
        Status answer = judge_write(offset, from);
        // What was done of it is durable.
        if (!answer.ok() && recorder_.trace_.events.size() > before &&
            !recorder_.trace_.events[before].failed &&
            recorder_.fault_.done != Fault::Done::nothing)
          add({.kind = Kind::write_lands, .offset = before, .bytes = {}, .marked = {}});
        PAWL_TRY(std::move(answer));
      }
      written = recorder_.trace_.events.size();
      PAWL_TRY(record_write(offset, from));
      pause = pause_of_flush();
    }
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const std::lock_guard lock(recorder_.mutex_);
    if (killed()) return judge(false);
    Status judged = judge(late);
    if (judged.ok()) {
      add({.kind = Kind::write_lands, .offset = written, .bytes = {}, .marked = {}});
    } else {
      recorder_.trace_.events[written].failed = true;
    }
    return judged;
  }

  Result<std::uint64_t> size() override { return real_.size(); }

  Status resize(std::uint64_t size_bytes) override {
    const std::lock_guard lock(recorder_.mutex_);
    Status answer = judge(true);
    if (killed() || !recorder_.is_done(answer)) return answer;
    add({.kind = Kind::resize, .offset = size_bytes, .bytes = {}, .marked = {}});
    PAWL_TRY(real_.resize(size_bytes));
    return answer;
  }
  Status reserve(std::uint64_t offset, std::uint64_t length) override {
    const std::lock_guard lock(recorder_.mutex_);
    Status answer = judge(true);
    length = part_done(answer, length);
    if (length == 0) return answer;
    add({.kind = Kind::reserve, .offset = offset, .length = length, .bytes = {}, .marked = {}});
    PAWL_TRY(real_.reserve(offset, length));
    return answer;
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override {
    const std::lock_guard lock(recorder_.mutex_);
    Status answer = judge(true);
    length = part_done(answer, length);
    if (length == 0) return answer;
    add({.kind = Kind::zero,
         .punches = true,
         .offset = offset,
         .length = length,
         .bytes = {},
         .marked = {}});
    PAWL_TRY(real_.punch(offset, length));
    return answer;
  }
  Status zero(std::uint64_t offset, std::uint64_t length) override {
    const std::lock_guard lock(recorder_.mutex_);
    Status answer = judge(true);
    length = part_done(answer, length);
    if (length == 0) return answer;
    add({.kind = Kind::zero, .offset = offset, .length = length, .bytes = {}, .marked = {}});
    PAWL_TRY(real_.zero(offset, length));
    return answer;
  }
  Result<std::uint64_t> find_shared(std::uint64_t offset, std::uint64_t end,
                                    const FoundShared& found) override {
    const std::lock_guard lock(recorder_.mutex_);
    if (number_ >= recorder_.space_.size()) return end;
    const std::vector<bool>& shared = recorder_.space_[number_].shared;
    const std::uint64_t end_block =
        std::min<std::uint64_t>((end + kBlockBytes - 1) / kBlockBytes, shared.size());
    for (std::uint64_t block = offset / kBlockBytes; block < end_block; ++block)
      if (shared[block]) found(block * kBlockBytes, (block + 1) * kBlockBytes);
    return end;
  }
  Result<std::uint64_t> allocated_prefix_bytes() override {
    const std::lock_guard lock(recorder_.mutex_);
    if (number_ >= recorder_.space_.size()) return real_.allocated_prefix_bytes();
    const std::vector<bool>& blocks = recorder_.space_[number_].blocks;
    const auto hole = std::find(blocks.begin(), blocks.end(), false);
    return static_cast<std::uint64_t>(hole - blocks.begin()) * kBlockBytes;
  }

  Status change_mark(const std::optional<Mark>& mark, const std::function<Status()>& change) {
    const std::lock_guard lock(recorder_.mutex_);
    Status answer = judge(mark.has_value());
    if (killed() || !recorder_.is_done(answer)) return answer;
    add({.kind = Kind::mark, .bytes = {}, .marked = mark});
    PAWL_TRY(change());
    return answer;
  }

 private:
  // All below: the recorder is locked.
  bool killed() const { return life_ != recorder_.lives_[volume_]; }
  Status judge(bool takes_space) {
    if (killed()) return Status::failure(EIO, "the program was killed");
    return recorder_.judge(takes_space);
  }
  std::uint64_t part_done(const Status& answer, std::uint64_t length) const {
    return killed() ? 0 : recorder_.part_done(answer, length);
  }
  void add(Event event) {
    event.volume = volume_;
    event.file = number_;
    recorder_.add(std::move(event));
  }
  // A write that fails may have been done in part.  Short of space, it comes to an end with one of
  // its blocks, and not the last; the running program sees that much.  Else it sees nothing, and
  // nobody knows.
  Status judge_write(std::uint64_t offset, std::span<const std::byte> from) {
    if (killed()) return judge(true);
    Status judged = judge(true);
    if (judged.ok()) return judged;
    if (recorder_.fault_.done != Fault::Done::nothing) {
      from = from.first(part_done(judged, from.size()));
      if (!from.empty()) PAWL_TRY(record_write(offset, from));
    } else if (judged.error_number() == ENOSPC) {
      from = from.first(round_down(std::max<std::size_t>(from.size(), 1) - 1, kPageBytes));
      if (!from.empty()) PAWL_TRY(record_write(offset, from));
    } else {
      add({.kind = Kind::write,
           .failed = true,
           .offset = offset,
           .bytes = copy_of(from),
           .marked = {}});
    }
    return judged;
  }
  Status record_write(std::uint64_t offset, std::span<const std::byte> from) {
    add({.kind = Kind::write, .offset = offset, .bytes = copy_of(from), .marked = {}});
    return real_.write(offset, from);
  }
  std::chrono::microseconds pause_of_flush() {
    if (recorder_.pauses_ == Pauses::never) return {};
    if (recorder_.pauses_ == Pauses::sometimes && recorder_.random_() % kSlowFlushEvery != 0)
      return {};
    return std::chrono::microseconds(recorder_.random_() % kFlushMicrosecondsMax);
  }

  Recorder& recorder_;
  const std::uint16_t volume_;
  const std::uint32_t number_;
  const unsigned life_;
  std::unique_ptr<MediumFile> owned_;
  MediumFile& real_;
};

// ----------------------------------------------------------------------------------------- memory

// What a life of a program does to the memory that shows its files.
class Recorder::Memory final : public MemoryObserver {
 public:
  Memory(Recorder& recorder, std::uint16_t volume)
      : recorder_(recorder), volume_(volume), life_(recorder.lives_[volume]) {}

  // The recorder is locked.
  void show(std::uint32_t file, const std::byte* first) { windows_.push_back({file, first}); }

  bool stores(const std::byte* at, std::span<const std::byte> bytes) override {
    return moves(Kind::store, at, bytes);
  }
  bool streams(const std::byte* at, std::span<const std::byte> bytes) override {
    return moves(Kind::write, at, bytes);
  }
  void writes_back(const std::byte* line) override {
    const std::lock_guard lock(recorder_.mutex_);
    if (killed()) return;
    Event event = event_at(Kind::write_back, line);
    event.length = kMemoryLineBytes;
    recorder_.add(std::move(event));
  }
  void fences() override {
    const std::lock_guard lock(recorder_.mutex_);
    if (!killed())
      recorder_.add({.kind = Kind::fence, .volume = volume_, .bytes = {}, .marked = {}});
  }

 private:
  struct Shown {
    std::uint32_t file;
    const std::byte* first;
  };

  bool killed() const { return life_ != recorder_.lives_[volume_]; }
  bool moves(Kind kind, const std::byte* at, std::span<const std::byte> bytes) {
    const std::lock_guard lock(recorder_.mutex_);
    if (killed()) return false;
    Event event = event_at(kind, at);
    event.bytes = copy_of(bytes);
    recorder_.add(std::move(event));
    return true;
  }
  // Of the windows, that which begins last before it.
  Event event_at(Kind kind, const std::byte* at) const {
    const Shown* shown = nullptr;
    for (const Shown& window : windows_) {
      if (window.first <= at && (shown == nullptr || window.first > shown->first)) shown = &window;
    }
    PAWL_ASSERT(shown != nullptr);
    return {.kind = kind,
            .volume = volume_,
            .file = shown->file,
            .offset = static_cast<std::uint64_t>(at - shown->first),
            .bytes = {},
            .marked = {}};
  }

  Recorder& recorder_;
  const std::uint16_t volume_;
  const unsigned life_;
  std::vector<Shown> windows_;
};

// ----------------------------------------------------------------------------------------- medium

class Recorder::RecordedMedium final : public Medium {
 public:
  RecordedMedium(Recorder& recorder, std::unique_ptr<Medium> real, std::uint16_t volume)
      : recorder_(recorder),
        volume_(volume),
        real_(std::move(real)),
        memory_(recorder, volume),
        base_(recorder, volume, volume, real_->base()) {
    if (!recorder.trace_.is_memory) return;
    base_in_memory_ = std::make_unique<PersistentFile>(base_, window_of(volume, real_->base()),
                                                       instructions_, real_->path());
  }

  MediumFile& base() override {
    if (base_in_memory_ != nullptr) return *base_in_memory_;
    return base_;
  }
  std::uint64_t block_bytes() const override { return real_->block_bytes(); }
  FileIdentity identity() const override { return real_->identity(); }
  const std::string& path() const override { return real_->path(); }
  const std::string& journal_path() const override { return real_->journal_path(); }

  Result<JournalFile> acquire_journal(bool create) override {
    auto acquired = acquire_recorded(create);
    // Not under the recorder's lock, which the file takes below its own.
    if (acquired.ok() && base_in_memory_ != nullptr) base_in_memory_->forget();
    return acquired;
  }
  Result<JournalFile> acquire_recorded(bool create) {
    const std::lock_guard lock(recorder_.mutex_);
    auto acquired = real_->acquire_journal(create);
    if (!acquired.ok()) return acquired;
    held_ = recorder_.journals_[volume_];
    if (acquired.value().is_new) {
      held_ = recorder_.files_++;
      add(Kind::make_journal);
    }
    const bool is_memory = recorder_.trace_.is_memory;
    MemoryWindow window;
    if (is_memory) window = window_of(held_, *acquired.value().file);
    acquired.value().file =
        std::make_unique<File>(recorder_, volume_, held_, std::move(acquired.value().file));
    if (is_memory) {
      acquired.value().file = std::make_unique<PersistentFile>(
          std::move(acquired.value().file), std::move(window), instructions_, journal_path());
    }
    return acquired;
  }
  Status publish_journal() override {
    if (recorder_.trace_.is_memory) instructions_->fence();
    const std::lock_guard lock(recorder_.mutex_);
    if (recorder_.journals_[volume_] == held_) return real_->publish_journal();
    PAWL_TRY(flush_new());
    Status answer = recorder_.judge(true);
    if (!recorder_.is_done(answer)) return answer;
    add(Kind::name_journal);
    recorder_.journals_[volume_] = held_;
    PAWL_TRY(real_->publish_journal());
    PAWL_TRY(std::move(answer));
    answer = recorder_.judge(false);
    if (recorder_.is_done(answer)) add(Kind::names_land);
    return answer;
  }
  Result<std::unique_ptr<MediumFile>> read_journal() override { return real_->read_journal(); }
  Status remove_journal() override {
    const std::lock_guard lock(recorder_.mutex_);
    Status answer = recorder_.judge(false);
    if (!recorder_.is_done(answer)) return answer;
    if (recorder_.journals_[volume_] == held_) {
      add(Kind::remove_journal);
      recorder_.journals_[volume_] = 0;
    }
    PAWL_TRY(real_->remove_journal());
    return answer;
  }

  bool can_mark() const override { return real_->can_mark(); }
  Result<std::optional<Mark>> mark() override { return real_->mark(); }
  Status set_mark(const Mark& mark) override {
    return change_mark(mark, [&] { return real_->set_mark(mark); });
  }
  Status clear_mark() override {
    return change_mark(std::nullopt, [this] { return real_->clear_mark(); });
  }

  Result<std::unique_ptr<Medium>> open_sibling(const std::string& name) override {
    if (recorder_.open_sibling_ == nullptr) return Medium::open_sibling(name);
    return recorder_.open_sibling_(name);
  }
  Result<char*> map_private(void* address, std::size_t length, int protection, int flags,
                            std::uint64_t offset) override {
    return real_->map_private(address, length, protection, flags, offset);
  }

 private:
  Status change_mark(const std::optional<Mark>& mark, const std::function<Status()>& change) {
    if (!can_mark()) return change();
    Status answer = base_.change_mark(mark, change);
    if (base_in_memory_ != nullptr) base_in_memory_->changed_beneath();
    return answer;
  }

  // Of a new journal, all that was written.  The recorder is locked.
  Status flush_new() {
    const std::uint64_t begun = recorder_.trace_.events.size();
    add(Kind::flush_begins);
    Status answer = recorder_.judge(false);
    recorder_.add({.kind = recorder_.is_done(answer) ? Kind::flush_ends : Kind::flush_fails,
                   .volume = volume_,
                   .file = held_,
                   .offset = begun,
                   .bytes = {},
                   .marked = {}});
    return answer.ok() ? answer : Status::failure(EIO, answer.text());
  }

  static constexpr std::size_t kWindowBytes = std::size_t{1} << 30;  // as a MemoryDisk's file has

  void add(Kind kind) {
    recorder_.add({.kind = kind, .volume = volume_, .file = held_, .bytes = {}, .marked = {}});
  }
  MemoryWindow window_of(std::uint32_t number, MediumFile& file) {
    auto* const first = const_cast<std::byte*>(file.in_place());
    PAWL_ASSERT(first != nullptr);
    memory_.show(number, first);
    return MemoryWindow::borrowed(first, kWindowBytes);
  }

  Recorder& recorder_;
  const std::uint16_t volume_;
  std::unique_ptr<Medium> real_;
  Memory memory_;
  const std::shared_ptr<ObservedMemory> instructions_ = std::make_shared<ObservedMemory>(memory_);
  File base_;
  std::unique_ptr<PersistentFile> base_in_memory_;
  std::uint32_t held_ = 0;
};

std::unique_ptr<Medium> Recorder::record(std::unique_ptr<Medium> real, std::uint16_t volume) {
  return std::make_unique<RecordedMedium>(*this, std::move(real), volume);
}

}  // namespace pawl::test
