#include "crash/group_life.h"

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "crash/repeatable.h"
#include "mapping/group.h"
#include "workload/file_model.h"
#include "workload/random.h"

namespace pawl::test {
namespace {

constexpr std::uint64_t kWindowPages = 24;
constexpr std::uint64_t kFirstBytesMax = 12 * kPageBytes;
constexpr std::uint64_t kJournalBytes = kJournalSizeMin;
constexpr std::size_t kStoreBytesMax = 300;
constexpr std::uint64_t kJournalBytesMax = 4 << 20;

const std::array<std::string, kGroupVolumes> kNames = {"group", "first", "second"};

// The disks, which know each other; recorded or not.
class Machine {
 public:
  Machine(const GroupDisks& disks, Backing backing, Recorder* recorder) : recorder_(recorder) {
    for (std::size_t volume = 0; volume < kGroupVolumes; ++volume) {
      disks_[volume] = std::make_unique<MemoryDisk>(
          disks[volume], MemoryDiskOptions{.backing = backing,
                                           .file_bytes_max = kJournalBytesMax,
                                           .name = kNames[volume],
                                           .open_sibling = [this](const std::string& name) {
                                             return open(name);
                                           }});
    }
    if (recorder_ != nullptr)
      recorder_->open_siblings_with([this](const std::string& name) { return open(name); });
  }

  std::unique_ptr<Medium> open(std::size_t volume) {
    auto medium = disks_[volume]->open();
    if (recorder_ == nullptr) return medium;
    return recorder_->record(std::move(medium), static_cast<std::uint16_t>(volume));
  }
  StoredDisk state(std::size_t volume) const { return disks_[volume]->state(); }

 private:
  Result<std::unique_ptr<Medium>> open(const std::string& name) {
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) return Status::failure(ENOENT, "there is no " + name);
    return open(static_cast<std::size_t>(found - kNames.begin()));
  }

  Recorder* const recorder_;
  std::array<std::unique_ptr<MemoryDisk>, kGroupVolumes> disks_;
};

class Life {
 public:
  Life(const GroupLifeOptions& options, const GroupDisks& start, const GroupContents& contents)
      : options_(options),
        random_(options.seed),
        recorder_(start, true, options.seed, Pauses::sometimes),
        machine_(start, Backing::memory_file, &recorder_) {
    for (std::size_t volume = 0; volume < kGroupVolumes; ++volume)
      models_.emplace_back(contents[volume], kWindowPages);
    begin_commit();
    acknowledge();
    recorder_.fail(options.fault);
  }

  GroupLifeEnd run() {
    open_group();
    for (unsigned i = 0; i < options_.steps && !over_; ++i) step();
    if (!over_ && below(random_, 2) == 0) close_group();
    mappings_ = {};
    group_.reset();
    GroupLifeEnd end;
    end.wrong = wrong_.empty() ? recorder_.wrong() : wrong_;
    end.failed_before = recorder_.failed_before();
    end.operations = recorder_.operations();
    end.trace = recorder_.take();
    return end;
  }

 private:
  // The commit of all files as they are meant to be committed now.
  void begin_commit() {
    for (std::size_t volume = 0; volume < kGroupVolumes; ++volume) {
      number_ =
          recorder_.begin_commit(static_cast<std::uint16_t>(volume), models_[volume].committed());
    }
  }
  void acknowledge() {
    for (std::size_t volume = 0; volume < kGroupVolumes; ++volume)
      recorder_.acknowledge(static_cast<std::uint16_t>(volume), number_);
  }

  // The life ends with the first failure: whether it may fail, the fault decides.
  bool ok(const Status& status, const std::string& what) {
    if (status.ok()) return true;
    over_ = true;
    if (!recorder_.failed_before().has_value()) wrong_ = what + ": " + status.text();
    if (status.text().empty()) wrong_ = what + " fails without a text";
    return false;
  }

  void open_group() {
    Options pawl = Options::from_environment().value();
    pawl.journal_size_bytes = kJournalBytes;
    pawl.apply = options_.seed % 2 == 0 ? ApplyChoice::async : ApplyChoice::eager;
    pawl.tracker = options_.seed / 2 % 2 == 0 ? TrackerChoice::automatic : TrackerChoice::fault;
    pawl.apply_threshold_pages = options_.seed / 4 % 2 == 0 ? 2 : 128;
    auto group = Group::open(machine_.open(kGroupVolume), pawl);
    if (!ok(group.status(), "opening the group")) return;
    group_ = std::move(group.value());
    for (std::size_t volume = 1; volume < kGroupVolumes && !over_; ++volume) join(volume);
  }

  void join(std::size_t volume) {
    auto mapping = Group::join(group_, machine_.open(volume));
    if (!ok(mapping.status(), "joining")) return;
    auto window = mapping.value()->map_window(nullptr, kWindowPages * kPageBytes,
                                              PROT_READ | PROT_WRITE, 0, 0);
    if (!ok(window.status(), "mapping")) return;
    mappings_[volume] = std::move(mapping.value());
    windows_[volume] = window.value();
    check_memory(volume);
  }

  void step() {
    const std::size_t volume = 1 + below(random_, kGroupVolumes - 1);
    if (mappings_[volume] == nullptr) return join(volume);
    switch (below(random_, 24)) {
      case 0:
        return leave(volume);
      case 1:
        close_group();
        if (!over_) open_group();
        return;
      case 2:
      case 3:
        return truncate(volume);
      case 4:
        return roll_back();
      case 5:
      case 6:
        return commit_one(volume);
      case 7:
      case 8:
      case 9:
        return commit(true);
      case 10:
      case 11:
      case 12:
      case 13:
        return commit(false);
      case 14:
        if (ok(group_->wait(), "waiting")) acknowledge();
        return;
      default:
        return store(volume);
    }
  }

  void store(std::size_t volume) {
    const std::uint64_t size = models_[volume].size();
    if (size == 0) return;
    const std::uint64_t offset = below(random_, size);
    const std::size_t count =
        1 + below(random_, std::min<std::uint64_t>(kStoreBytesMax, size - offset));
    const auto bytes = random_bytes(random_, count);
    models_[volume].write(offset, bytes);
    std::memcpy(windows_[volume] + offset, bytes.data(), count);
  }

  void truncate(std::size_t volume) {
    const std::uint64_t size = below(random_, kWindowPages * kPageBytes + 1);
    if (!ok(mappings_[volume]->truncate(size), "truncating")) return;
    models_[volume].truncate(size);
    check_memory(volume);
  }

  void commit(bool later) {
    for (std::size_t volume = 1; volume < kGroupVolumes; ++volume) {
      if (mappings_[volume] == nullptr) continue;
      models_[volume].commit(models_[volume].after_commit({0, kWindowPages}));
    }
    begin_commit();
    if (!ok(later ? group_->commit_async() : group_->commit(), "a commit") || later) return;
    acknowledge();
  }

  void commit_one(std::size_t volume) {
    models_[volume].commit(models_[volume].after_commit({0, kWindowPages}));
    begin_commit();
    if (ok(mappings_[volume]->commit(windows_[volume], kWindowPages * kPageBytes), "one commit"))
      acknowledge();
  }

  void roll_back() {
    if (!ok(group_->roll_back(), "a rollback")) return;
    acknowledge();
    for (std::size_t volume = 1; volume < kGroupVolumes; ++volume) {
      if (mappings_[volume] == nullptr) continue;
      models_[volume].roll_back();
      check_memory(volume);
    }
  }

  // What it did not commit is gone.
  void leave(std::size_t volume) {
    if (!ok(mappings_[volume]->close(), "leaving")) return;
    mappings_[volume].reset();
    acknowledge();
    models_[volume].restart(models_[volume].committed());
    const StoredDisk disk = machine_.state(volume);
    if (disk.mark.has_value() || disk.journal.has_value())
      wrong_ = "a file that left has a mark or a side file";
    if (disk.base.first_difference(models_[volume].committed()).has_value())
      wrong_ = "a file that left is not as it was committed";
    over_ = over_ || !wrong_.empty();
  }

  void close_group() {
    for (std::size_t volume = 1; volume < kGroupVolumes && !over_; ++volume) {
      if (mappings_[volume] != nullptr) leave(volume);
    }
    if (over_ || !ok(group_->close(), "closing")) return;
    group_.reset();
  }

  void check_memory(std::size_t volume) {
    const Content& now = models_[volume].now();
    std::vector<std::byte> wanted(now.size());
    now.read(0, wanted);
    if (mappings_[volume]->size() == now.size() &&
        (wanted.empty() || std::memcmp(wanted.data(), windows_[volume], wanted.size()) == 0))
      return;
    wrong_ = "the memory of " + kNames[volume] + " is not what the program stored";
    over_ = true;
  }

  const GroupLifeOptions options_;
  Random random_;
  Recorder recorder_;
  Machine machine_;
  std::vector<FileModel> models_;
  std::shared_ptr<Group> group_;
  std::array<std::unique_ptr<Mapping>, kGroupVolumes> mappings_;
  std::array<char*, kGroupVolumes> windows_{};
  std::uint64_t number_ = 0;
  bool over_ = false;
  std::string wrong_;
};

Status recover_in(Machine& machine, Way way) {
  std::vector<std::size_t> order;
  if (way == Way::first_alone) order = {1};
  if (way == Way::second_alone) order = {2};
  if (way == Way::each_alone) order = {2, 1};
  order.push_back(kGroupVolume);
  for (const std::size_t volume : order) {
    const auto medium = machine.open(volume);
    if (auto recovered = recover(*medium); !recovered.ok()) {
      return Status::failure(recovered.status().error_number(),
                             kNames[volume] + " is refused: " + recovered.status().text());
    }
  }
  // What a crash left of a file that was about to join, or had left.
  for (std::size_t volume = 1; volume < kGroupVolumes; ++volume) {
    const auto medium = machine.open(volume);
    if (auto recovered = recover(*medium); !recovered.ok()) return recovered.status();
  }
  return {};
}

}  // namespace

GroupDisks new_group(unsigned seed) {
  Random random(seed);
  GroupDisks disks(kGroupVolumes);
  for (std::size_t volume = 1; volume < kGroupVolumes; ++volume)
    disks[volume].base.write(0, random_bytes(random, 1 + below(random, kFirstBytesMax)));
  return disks;
}

GroupLifeEnd live(const GroupLifeOptions& options, const GroupDisks& start,
                  const GroupContents& contents) {
  repeat_from(options.seed);
  return Life(options, start, contents).run();
}

FoundGroup recover_group(const GroupDisks& disks, Way way) {
  repeat_from(disks[1].base.checksum() + disks[2].base.checksum());
  Machine machine(disks, Backing::pages, nullptr);
  FoundGroup found;
  if (const Status recovered = recover_in(machine, way); !recovered.ok())
    return {{}, recovered.text()};
  for (std::size_t volume = 0; volume < kGroupVolumes; ++volume) {
    const StoredDisk disk = machine.state(volume);
    if (disk.mark.has_value()) found.wrong = kNames[volume] + " still has its mark";
    if (disk.journal.has_value()) found.wrong = kNames[volume] + " still has its side file";
    found.contents[volume] = disk.base;
  }
  return found;
}

Trace record_recovery(const GroupDisks& disks, Way way, unsigned seed) {
  repeat_from(seed);
  Recorder recorder(disks, true, seed, Pauses::never);
  {
    Machine machine(disks, Backing::pages, &recorder);
    [[maybe_unused]] const Status ignored = recover_in(machine, way);
  }
  return recorder.take();
}

}  // namespace pawl::test
