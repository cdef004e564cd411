#include "crash/simulated_disk.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "medium/block_medium.h"

namespace pawl::test {
namespace {

// Some flushes take long enough for much to happen meanwhile.
constexpr unsigned kFlushMicrosecondsMax = 100;
constexpr unsigned kSlowFlushMicrosecondsMax = 2000;
constexpr unsigned kSlowFlushEvery = 10;

bool toss(std::mt19937& random) { return random() % 2 == 0; }

void apply(StoredFile& file, const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::write:
      file.content.write(operation.offset, operation.bytes);
      break;
    case Operation::Kind::resize:
      file.content.resize(operation.offset);
      break;
    case Operation::Kind::zero:
      file.content.zero(operation.offset, operation.length);
      break;
    case Operation::Kind::mark:
      file.mark = operation.mark;
      break;
  }
}

// Some of the sectors are there.  The new size may be there before them, or not at all: then what
// lies behind the old end is lost.
void apply_torn(StoredFile& file, const Operation& write, std::mt19937& random) {
  const std::uint64_t end = write.offset + write.bytes.size();
  if (file.content.size() < end && toss(random)) file.content.resize(end);
  for (std::uint64_t offset = write.offset; offset < end;) {
    const std::uint64_t stop = std::min(round_down(offset, kSectorBytes) + kSectorBytes, end);
    if (toss(random) && stop <= file.content.size()) {
      file.content.write(offset,
                         std::span(write.bytes).subspan(offset - write.offset, stop - offset));
    }
    offset = stop;
  }
}

bool is_write(const Operation& operation) { return operation.kind == Operation::Kind::write; }

}  // namespace

void UnflushedFile::flush_first(std::uint64_t count) {
  for (; flushed_ < count; ++flushed_) {
    apply(durable_, pending_.front());
    pending_.pop_front();
  }
}

StoredFile UnflushedFile::each_on_its_own(std::mt19937& random) const {
  StoredFile file = durable_;
  const auto changes = static_cast<std::uint64_t>(
      std::count_if(pending_.begin(), pending_.end(), std::not_fn(is_write)));
  std::uint64_t changes_kept = random() % (changes + 1);
  for (const Operation& operation : pending_) {
    if (!is_write(operation)) {
      if (changes_kept == 0) continue;
      changes_kept -= 1;
      apply(file, operation);
      continue;
    }
    switch (random() % 4) {
      case 0:
        break;
      case 1:
        apply(file, operation);
        break;
      default:
        apply_torn(file, operation, random);
    }
  }
  return file;
}

StoredFile UnflushedFile::in_order_up_to_one(std::mt19937& random) const {
  StoredFile file = durable_;
  std::uint64_t kept = random() % (pending_.size() + 1);
  for (const Operation& operation : pending_) {
    if (kept == 0) {
      if (is_write(operation)) apply_torn(file, operation, random);
      break;
    }
    kept -= 1;
    apply(file, operation);
  }
  return file;
}

StoredFile UnflushedFile::after_power_cut(std::mt19937& random) const {
  switch (random() % 4) {
    case 0:
      return durable_;
    case 1:
      return in_order_up_to_one(random);
    default:
      return each_on_its_own(random);
  }
}

// ---------------------------------------------------------------------------------------- files

class SimulatedDisk::File final : public MediumFile {
 public:
  File(SimulatedDisk& disk, UnflushedFile& stored, MediumFile& real)
      : disk_(disk), stored_(stored), real_(real) {}
  File(SimulatedDisk& disk, UnflushedFile& stored, std::unique_ptr<MediumFile> real)
      : disk_(disk), stored_(stored), owned_(std::move(real)), real_(*owned_) {}

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    return real_.read(offset, into);
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    return happens({.kind = Operation::Kind::write,
                    .offset = offset,
                    .bytes = {from.begin(), from.end()},
                    .mark = {}},
                   [&] { return real_.write(offset, from); });
  }
  // Takes what was done before it began.  The real file need not be flushed; only time passes, in
  // which others go on.
  Status flush() override {
    std::uint64_t count = 0;
    std::chrono::microseconds pause{};
    {
      const std::lock_guard lock(disk_.mutex_);
      disk_.moment();
      count = stored_.count();
      const bool slow = disk_.random_() % kSlowFlushEvery == 0;
      pause = std::chrono::microseconds(disk_.random_() %
                                        (slow ? kSlowFlushMicrosecondsMax : kFlushMicrosecondsMax));
    }
    std::this_thread::sleep_for(pause);
    const std::lock_guard lock(disk_.mutex_);
    disk_.moment();
    stored_.flush_first(count);
    disk_.moment();
    return {};
  }
  Result<std::uint64_t> size() override { return real_.size(); }
  Status resize(std::uint64_t size_bytes) override {
    return happens({.kind = Operation::Kind::resize, .offset = size_bytes, .bytes = {}, .mark = {}},
                   [&] { return real_.resize(size_bytes); });
  }
  Status reserve(std::uint64_t offset, std::uint64_t length) override {
    return real_.reserve(offset, length);
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override {
    return happens(zeroed(offset, length), [&] { return real_.punch(offset, length); });
  }
  Status zero(std::uint64_t offset, std::uint64_t length) override {
    return happens(zeroed(offset, length), [&] { return real_.zero(offset, length); });
  }
  Result<std::uint64_t> allocated_prefix_bytes() override { return real_.allocated_prefix_bytes(); }

  template <class Act>
  Status happens(Operation operation, Act act) {
    const std::lock_guard lock(disk_.mutex_);
    disk_.moment();
    stored_.add(std::move(operation));
    const Status status = act();
    disk_.moment();
    return status;
  }

 private:
  static Operation zeroed(std::uint64_t offset, std::uint64_t length) {
    return {
        .kind = Operation::Kind::zero, .offset = offset, .length = length, .bytes = {}, .mark = {}};
  }

  SimulatedDisk& disk_;
  UnflushedFile& stored_;
  std::unique_ptr<MediumFile> owned_;
  MediumFile& real_;
};

// The mark is kept here and not on the real file, so that the test needs no extended attributes.
class SimulatedDisk::DiskMedium final : public Medium {
 public:
  DiskMedium(SimulatedDisk& disk, std::unique_ptr<Medium> real)
      : disk_(disk), real_(std::move(real)), base_(disk, disk.base_, real_->base()) {}

  MediumFile& base() override { return base_; }
  // The real inode is a new one each time; on the disk it is the same file.
  FileIdentity identity() const override { return {.inode = 1, .birth_time_ns = 1}; }
  const std::string& path() const override { return real_->path(); }
  const std::string& journal_path() const override { return real_->journal_path(); }

  Result<JournalFile> acquire_journal(bool create) override {
    auto acquired = real_->acquire_journal(create);
    if (!acquired.ok()) return acquired;
    const std::lock_guard lock(disk_.mutex_);
    if (acquired.value().is_new) disk_.journal_ = UnflushedFile({});
    acquired.value().file =
        std::make_unique<File>(disk_, disk_.journal_, std::move(acquired.value().file));
    return acquired;
  }
  Status publish_journal() override {
    const std::lock_guard lock(disk_.mutex_);
    if (disk_.journal_name_ != Name::present) name_journal(Name::in_doubt);
    PAWL_TRY(real_->publish_journal());
    name_journal(Name::present);
    return {};
  }
  Result<std::unique_ptr<MediumFile>> read_journal() override { return real_->read_journal(); }
  Status remove_journal() override {
    const std::lock_guard lock(disk_.mutex_);
    if (disk_.journal_name_ == Name::present) name_journal(Name::in_doubt);
    return real_->remove_journal();
  }

  bool can_mark() const override { return true; }
  Result<std::optional<Mark>> mark() override {
    const std::lock_guard lock(disk_.mutex_);
    return disk_.mark_;
  }
  Status set_mark(const Mark& mark) override { return change_mark(mark); }
  Status clear_mark() override { return change_mark(std::nullopt); }

  Result<char*> map_private(void* address, std::size_t length, int protection, int flags,
                            std::uint64_t offset) override {
    return real_->map_private(address, length, protection, flags, offset);
  }
  void abandon() override { real_->abandon(); }

 private:
  void name_journal(Name name) {
    disk_.moment();
    disk_.journal_name_ = name;
    disk_.moment();
  }
  Status change_mark(const std::optional<Mark>& mark) {
    return base_.happens({.kind = Operation::Kind::mark, .bytes = {}, .mark = mark}, [&] {
      disk_.mark_ = mark;
      return Status{};
    });
  }

  SimulatedDisk& disk_;
  std::unique_ptr<Medium> real_;
  File base_;
};

// ----------------------------------------------------------------------------------------- disk

SimulatedDisk::SimulatedDisk(const DiskState& state, const std::string& path, unsigned seed)
    : path_(path),
      random_(seed),
      base_(state.base),
      journal_({state.journal.value_or(Content{}), {}}),
      mark_(state.base.mark),
      journal_name_(state.journal.has_value() ? Name::present : Name::absent) {
  state.base.content.save_as(path);
  if (state.journal.has_value()) state.journal->save_as(path + kJournalSuffix);
}

void SimulatedDisk::watch(Moment moment) {
  const std::lock_guard lock(mutex_);
  moment_ = std::move(moment);
}

void SimulatedDisk::moment() {
  if (moment_) moment_([this] { return cut(); });
}

DiskState SimulatedDisk::cut_now() {
  const std::lock_guard lock(mutex_);
  return cut();
}

DiskState SimulatedDisk::cut() {
  DiskState state{base_.after_power_cut(random_), {}};
  const bool has_journal =
      journal_name_ == Name::present || (journal_name_ == Name::in_doubt && toss(random_));
  if (has_journal) state.journal = journal_.after_power_cut(random_).content;
  return state;
}

Result<std::unique_ptr<Medium>> SimulatedDisk::open() {
  auto real = open_block_medium(path_, false);
  if (!real.ok()) return real;
  return std::unique_ptr<Medium>(std::make_unique<DiskMedium>(*this, std::move(real.value())));
}

}  // namespace pawl::test
