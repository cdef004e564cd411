#include "msync/systems.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "mapping/options.h"
#include "medium/idle_poll.h"
#include "msync/data_journal.h"
#include "msync/files.h"
#include "pawl/store.h"

namespace pawl::bench {
namespace {

constexpr std::uint32_t kFewPages = 100;
constexpr std::uint64_t kSeedOfSystems = 20130415;
constexpr std::chrono::milliseconds kSettlePoll{1};
constexpr int kSettleQuietPolls = 3;
constexpr int kSettlePollsMax = 5000;

class Floor final : public System {
 public:
  Floor(const std::string& path, std::uint64_t bytes, const FloorSetup& setup)
      : file_bytes_(bytes),
        file_(written(path, bytes, setup.direct_io)),
        idle_poll_us_(setup.awake ? kIdlePollDefaultUs : 0) {}

  void prepare(const Shape& shape) override {
    if (record_ == nullptr || record_bytes_ != shape.record_bytes) {
      record_bytes_ = shape.record_bytes;
      record_.reset(static_cast<char*>(std::aligned_alloc(kPageBytes, record_bytes_)));
      if (record_ == nullptr) throw std::runtime_error("no memory for a record");
    }
    if (position_ + record_bytes_ > file_bytes_) position_ = 0;
    std::memset(record_.get(), static_cast<int>(++turn_), record_bytes_);
  }
  void store(const Shape&) override {}
  void commit(const Shape&) override {
    write_and_flush();
    position_ += record_bytes_;
    logged_.commits += 1;
    logged_.bytes += record_bytes_;
  }
  Logged logged() const override { return logged_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  static File written(const std::string& path, std::uint64_t bytes, bool direct_io) {
    File file = make_written_file(path, bytes);
    if (!direct_io) return file;
    // Pages left in the page cache would have to be thrown out by each write.
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    return open_file(path, O_DIRECT);
  }
  void write_and_flush() {
    const IdlePoll::Wait wait(idle_poll_us_);
    if (::pwrite(file_.descriptor(), record_.get(), record_bytes_, static_cast<off_t>(position_)) !=
            static_cast<ssize_t>(record_bytes_) ||
        ::fdatasync(file_.descriptor()) != 0) {
      fail_with_errno("cannot write and flush");
    }
  }

  const std::uint64_t file_bytes_;
  File file_;
  const std::uint32_t idle_poll_us_;
  std::unique_ptr<char, Free> record_;
  std::uint64_t record_bytes_ = 0;
  std::uint64_t position_ = 0;
  unsigned turn_ = 0;
  Logged logged_;
};

class PlainMsync final : public System {
 public:
  PlainMsync(const File& file, std::uint64_t bytes)
      : bytes_(bytes), stores_(bytes / kPageBytes, kSeedOfSystems) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                            file.descriptor(), 0);
    if (at == MAP_FAILED) fail_with_errno("cannot map a file");
    memory_ = static_cast<char*>(at);
  }
  ~PlainMsync() override { ::munmap(memory_, bytes_); }

  void prepare(const Shape& shape) override { stores_.choose(shape); }
  void store(const Shape& shape) override { stores_.make(memory_, shape); }
  void commit(const Shape&) override {
    if (::msync(memory_, bytes_, MS_SYNC) != 0) fail_with_errno("msync failed");
  }

 private:
  const std::uint64_t bytes_;
  Stores stores_;
  char* memory_;
};

class Pawl final : public System {
 public:
  Pawl(const std::string& path, const PawlSetup& setup)
      : setup_(setup), stores_(setup.bytes / kPageBytes, kSeedOfSystems) {
    const bool written = setup.contents == Contents::written;
    const File file =
        written ? make_written_file(path, setup.bytes) : make_sparse_file(path, setup.bytes);
    pawl_options options;
    if (::pawl_options_init(&options) != 0) throw std::runtime_error(::pawl_last_error());
    options.tracker = setup.tracker;
    options.apply = setup.apply;
    if (setup.sleeping) options.idle_poll_us = 0;
    void* const at =
        ::pawl_mmap_with(nullptr, setup.bytes, PROT_READ | PROT_WRITE,
                         MAP_ATOMIC | (written ? MAP_POPULATE : 0), file.descriptor(), 0, &options);
    if (at == MAP_FAILED) throw Unavailable(::pawl_last_error());
    memory_ = static_cast<char*>(at);
    if (!written) use_few_pages();
  }
  ~Pawl() override { ::pawl_munmap(memory_, setup_.bytes); }

  void prepare(const Shape& shape) override { stores_.choose(shape); }
  void store(const Shape& shape) override {
    stores_.make(memory_, shape);
    if (setup_.tracker == PAWL_TRACKER_STORE) stores_.mark(memory_, shape);
  }
  void commit(const Shape&) override {
    if (::pawl_msync(memory_, setup_.bytes, MS_SYNC) != 0)
      throw std::runtime_error(::pawl_last_error());
  }

  // Until pages have not been applied for a while, and no checkpoint is due.
  void settle() override {
    std::uint64_t done = 0;
    int quiet_polls = 0;
    for (int poll = 0; poll < kSettlePollsMax && quiet_polls < kSettleQuietPolls; ++poll) {
      std::this_thread::sleep_for(kSettlePoll);
      const pawl_statistics now = statistics();
      const bool checkpoint_due = now.journal_used_bytes * 2 > now.journal_size_bytes;
      quiet_polls = now.pages_applied == done && !checkpoint_due ? quiet_polls + 1 : 0;
      done = now.pages_applied;
    }
  }
  Logged logged() const override {
    const pawl_statistics now = statistics();
    return {now.commits, now.bytes_logged};
  }

 private:
  pawl_statistics statistics() const {
    pawl_statistics now;
    if (::pawl_stats(memory_, &now) != 0) throw std::runtime_error(::pawl_last_error());
    return now;
  }
  void use_few_pages() {
    stores_.use_few_pages(kFewPages);
    for (const std::uint64_t page : stores_.few_pages()) {
      memory_[page * kPageBytes] = 1;
      if (setup_.tracker == PAWL_TRACKER_STORE) ::pawl_stored(memory_ + page * kPageBytes, 1);
    }
    commit({});
  }

  const PawlSetup setup_;
  Stores stores_;
  char* memory_;
};

// As large as Pawl's journal is by default.
constexpr std::uint64_t kFloorBytes = std::uint64_t{16} << 20;

}  // namespace

std::unique_ptr<System> make_floor(const std::string& directory, const FloorSetup& setup) {
  const std::string name = std::string(setup.direct_io ? "/floor-direct" : "/floor-buffered") +
                           (setup.awake ? "-awake" : "");
  return std::make_unique<Floor>(directory + name, kFloorBytes, setup);
}

std::unique_ptr<System> make_plain_msync(const std::string& directory, std::uint64_t bytes) {
  return std::make_unique<PlainMsync>(make_written_file(directory + "/msync", bytes), bytes);
}

std::unique_ptr<System> make_data_journal_msync(const std::string& directory, std::uint64_t bytes) {
  return std::make_unique<PlainMsync>(make_data_journal_file(directory, bytes), bytes);
}

std::unique_ptr<System> make_pawl(const std::string& directory, const PawlSetup& setup) {
  // One file for each system: they are in use at the same time.
  const std::string name = "/pawl-" + std::to_string(setup.tracker) + "-" +
                           std::to_string(setup.apply) + "-" + std::to_string(setup.bytes) + "-" +
                           std::to_string(static_cast<int>(setup.contents)) +
                           (setup.sleeping ? "-sleeping" : "");
  return std::make_unique<Pawl>(directory + name, setup);
}

}  // namespace pawl::bench
