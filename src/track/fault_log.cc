#include "track/fault_log.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "medium/medium.h"
#include "track/fault_sampler.h"

namespace pawl {

namespace {

// A thread on another processor may be between counting its fault and sampling it.
constexpr int kReadAttemptsMax = 16;
// A thread missed when the log was started keeps it from being believed; starting anew finds it.
constexpr std::uint64_t kRestartAfterMissesMin = 32;
constexpr std::uint64_t kRestartAfterMissesMax = 1 << 16;

std::int64_t count_faults() {
  rusage usage{};
  PAWL_ASSERT(getrusage(RUSAGE_SELF, &usage) == 0);
  return std::int64_t{usage.ru_minflt} + std::int64_t{usage.ru_majflt};
}

}  // namespace

namespace {
FaultLog* process_log = nullptr;  // the parent's is left behind by a forked child
}

class FaultLog {
 public:
  static FaultLog& process() {
    static std::once_flag once;
    std::call_once(once, [] {
      process_log = new FaultLog;
      // The child has neither the rings nor the parent's threads; another thread of the parent may
      // have held the lock.  It starts afresh, and its parent's log is left alone.
      pthread_atfork(nullptr, nullptr, [] {
        process_log->abandon_in_child();
        process_log = new FaultLog;
      });
    });
    return *process_log;
  }

  Status join(FaultLogClient* client) {
    const std::lock_guard lock(mutex_);
    if (sampler_ == nullptr) PAWL_TRY(start());
    clients_.push_back(client);
    return {};
  }

  void leave(FaultLogClient* client) {
    const std::lock_guard lock(mutex_);
    std::erase_if(ranges_, [&](const Range& range) { return range.client == client; });
    std::erase(clients_, client);
    if (clients_.empty()) sampler_.reset();
  }

  void add_range(FaultLogClient* client, std::uint64_t first, std::uint64_t end) {
    const std::lock_guard lock(mutex_);
    const Range range{first, end, client};
    ranges_.insert(std::upper_bound(ranges_.begin(), ranges_.end(), range, starts_before), range);
  }

  void remove_range(FaultLogClient* client, std::uint64_t first, std::uint64_t end) {
    const std::lock_guard lock(mutex_);
    std::vector<Range> kept;
    for (const Range& range : ranges_) {
      if (range.client != client || range.end <= first || end <= range.first) {
        kept.push_back(range);
        continue;
      }
      if (range.first < first) kept.push_back({range.first, first, client});
      if (end < range.end) kept.push_back({end, range.end, client});
    }
    ranges_ = std::move(kept);
  }

  bool take(FaultLogClient* client, std::vector<std::uint64_t>& pages) {
    const std::lock_guard lock(mutex_);
    if (!read_and_prove()) {
      for (FaultLogClient* other : clients_) forget(*other);
    }
    if (client->knows_) {
      pages.insert(pages.end(), client->pages_.begin(), client->pages_.end());
      client->pages_.clear();
      return true;
    }
    // From here on the walk sees what came before, and the log what comes after.
    forget(*client);
    client->knows_ = true;
    return false;
  }

  void walked() {
    const std::lock_guard lock(mutex_);
    if (baseline_.has_value() || !candidate_.has_value()) return;
    for (int attempt = 0; attempt < kReadAttemptsMax && !baseline_.has_value(); ++attempt) {
      read();
      if (faults_after_ - samples_ == *candidate_) baseline_ = candidate_;
    }
    candidate_.reset();
  }

 private:
  friend class FaultLogClient;

  struct Range {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    FaultLogClient* client = nullptr;
  };
  static bool starts_before(const Range& left, const Range& right) {
    return left.first < right.first;
  }

  static void forget(FaultLogClient& client) {
    client.knows_ = false;
    client.pages_.clear();
  }

  Status start() {
    sampler_.reset();
    baseline_.reset();
    candidate_.reset();
    samples_ = 0;
    Result<std::unique_ptr<FaultSampler>> sampler = FaultSampler::attach(kFaultLogDescriptorsMax);
    if (!sampler.ok()) return sampler.status();
    sampler_ = std::move(sampler.value());
    return {};
  }

  void abandon_in_child() {
    // When it was busy as the process forked, its descriptors stay open until the child's exec.
    if (!mutex_.try_lock()) return;
    if (sampler_ != nullptr) sampler_->abandon_in_child();
    sampler_.release();  // NOLINT(bugprone-unused-return-value): its rings are not mapped here
    mutex_.unlock();
  }

  void read() {
    faults_before_ = count_faults();
    samples_ += static_cast<std::int64_t>(
        sampler_->drain([this](std::uint64_t address) { dispatch(address / kPageBytes); }));
    faults_after_ = count_faults();
  }

  // Reads the log; true when nothing is missing from it since the baseline.
  bool read_and_prove() {
    if (sampler_ == nullptr) return false;
    for (int attempt = 0; attempt < kReadAttemptsMax; ++attempt) {
      read();
      if (baseline_.has_value()) {
        if (faults_after_ - samples_ == *baseline_) {
          misses_ = 0;
          restart_after_misses_ = kRestartAfterMissesMin;
          return true;
        }
      } else if (faults_before_ == faults_after_) {
        break;
      }
    }
    baseline_.reset();
    candidate_.reset();
    if (++misses_ >= restart_after_misses_) {
      misses_ = 0;
      restart_after_misses_ = std::min(restart_after_misses_ * 2, kRestartAfterMissesMax);
      if (!start().ok()) return false;  // without a log there are only walks
      read();
    }
    if (faults_before_ == faults_after_) candidate_ = faults_after_ - samples_;
    return false;
  }

  void dispatch(std::uint64_t page) {
    auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), Range{page, 0, nullptr}, starts_before);
    if (after == ranges_.begin()) return;
    const Range& range = *std::prev(after);
    if (page >= range.end || !range.client->knows_) return;
    if (range.client->pages_.size() >= kFaultLogPagesMax) {
      forget(*range.client);
      return;
    }
    range.client->pages_.push_back(page);
  }

  std::mutex mutex_;
  std::unique_ptr<FaultSampler> sampler_;
  std::vector<FaultLogClient*> clients_;
  std::vector<Range> ranges_;  // in order, without overlap

  std::int64_t samples_ = 0;  // read since the start
  std::int64_t faults_before_ = 0;
  std::int64_t faults_after_ = 0;
  // Faults counted less samples read, when nothing was missing; while it stays so nothing is.
  std::optional<std::int64_t> baseline_;
  std::optional<std::int64_t> candidate_;  // becomes the baseline if it is the same after the walk
  std::uint64_t misses_ = 0;               // in a row
  std::uint64_t restart_after_misses_ = kRestartAfterMissesMin;
};

Result<std::unique_ptr<FaultLogClient>> FaultLogClient::join() {
  std::unique_ptr<FaultLogClient> client(new FaultLogClient);
  client->log_ = &FaultLog::process();
  if (Status status = client->log_->join(client.get()); !status.ok()) {
    client->log_ = nullptr;
    return status;
  }
  return client;
}

FaultLogClient::~FaultLogClient() {
  // In a forked child the log that knew this client is the parent's, and stays untouched.
  if (log_ != nullptr && log_ == &FaultLog::process()) log_->leave(this);
}

void FaultLogClient::add_range(std::uint64_t first, std::uint64_t end) {
  log_->add_range(this, first, end);
}

void FaultLogClient::remove_range(std::uint64_t first, std::uint64_t end) {
  log_->remove_range(this, first, end);
}

bool FaultLogClient::take(std::vector<std::uint64_t>& pages) { return log_->take(this, pages); }

void FaultLogClient::walked() { log_->walked(); }

Status probe_fault_log() {
  Result<std::unique_ptr<FaultLogClient>> client = FaultLogClient::join();
  return client.status();
}

}  // namespace pawl
