#include "track/fault_log.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "medium/idle_poll.h"
#include "medium/medium.h"
#include "medium/own_process.h"
#include "track/fault_sampler.h"

namespace pawl {

namespace {

// A thread on another processor may be between counting its fault and sampling it.
constexpr int kReadAttemptsMax = 4;
// A thread missed when the log was started keeps it from being believed; starting anew finds it.
constexpr std::uint64_t kRestartAfterMissesMin = 32;
constexpr std::uint64_t kRestartAfterMissesMax = 1 << 16;

}  // namespace

class FaultLog {
 public:
  // A child has neither the rings nor the parent's threads; another thread of the parent may have
  // held the lock.  It starts afresh, and its parent's log is left alone: by whatever call the
  // child was made, for _Fork() and clone() run no handlers.
  static FaultLog& process() {
    FaultLog* present = process_log_.load();
    if (present != nullptr && present->is_this_process()) return *present;
    auto* const made = new FaultLog;
    if (!process_log_.compare_exchange_strong(present, made)) {
      delete made;
      return *present;
    }
    static std::atomic_flag handler_is_set;
    if (!handler_is_set.test_and_set()) pthread_atfork(nullptr, nullptr, close_after_fork);
    return *made;
  }
  bool is_this_process() const { return memory_ == number_of_memory(); }

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
    if (!clients_.empty()) return;
    sampler_.reset();
    machine_faults::close();
  }

  void add_range(FaultLogClient* client, std::uint64_t first, std::uint64_t end) {
    const std::lock_guard lock(mutex_);
    const Range range{first, end, client};
    ranges_.insert(std::upper_bound(ranges_.begin(), ranges_.end(), range, starts_before), range);
  }

  // It takes no memory, unless that is the midst of a range.
  void remove_range(FaultLogClient* client, std::uint64_t first, std::uint64_t end) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const Range range = ranges_[i];
      if (range.client != client || range.end <= first || end <= range.first) continue;
      if (range.first < first && end < range.end)
        ranges_.insert(ranges_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                       {end, range.end, client});
      if (range.first < first)
        ranges_[i].end = first;
      else
        ranges_[i].first = std::min(end, range.end);
    }
    std::erase_if(ranges_, [](const Range& range) { return range.first == range.end; });
  }

  bool take(FaultLogClient* client, std::vector<std::uint64_t>& pages) {
    const std::lock_guard lock(mutex_);
    Account& account = account_of(client->whose_);
    if (!is_complete(account)) {
      for (FaultLogClient* other : clients_) {
        if (other->whose_ == account.whose) forget(*other);
      }
      begin_anew(account);
    } else {
      account.misses = 0;
      account.restart_after_misses = kRestartAfterMissesMin;
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

 private:
  friend class FaultLogClient;

  struct Range {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    FaultLogClient* client = nullptr;
  };
  struct Account {
    FaultsOf whose;
    // At least so many of the counted faults will never be sampled.
    std::optional<std::int64_t> never_sampled_min = std::nullopt;
    std::uint64_t misses = 0;  // in a row
    std::uint64_t restart_after_misses = kRestartAfterMissesMin;
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
    for (Account& account : accounts_) account.never_sampled_min.reset();
    for (FaultLogClient* client : clients_) forget(*client);
    samples_ = 0;
    Result<std::unique_ptr<FaultSampler>> sampler = FaultSampler::attach(kFaultLogDescriptorsMax);
    if (!sampler.ok()) return sampler.status();
    sampler_ = std::move(sampler.value());
    for (Account& account : accounts_) take_bound(account);
    IdlePoll::do_meanwhile(machine_faults::prepare);
    return {};
  }

  Account& account_of(FaultsOf whose) {
    return whose == FaultsOf::machine ? accounts_[0] : accounts_[1];
  }

  // Of the log of the process that forked only: a child without handlers gives the numbers of its
  // parent's descriptors to others.
  static void close_after_fork() {
    FaultLog* const log = process_log_.load();
    if (log->process_ == getppid()) log->abandon_in_child();
  }

  void abandon_in_child() {
    // When it was busy as the process forked, its descriptors stay open until the child's exec.
    if (!mutex_.try_lock()) return;
    if (sampler_ != nullptr) sampler_->abandon_in_child();
    sampler_.release();  // NOLINT(bugprone-unused-return-value): its rings are not mapped here
    mutex_.unlock();
  }

  void read() {
    samples_ += static_cast<std::int64_t>(
        sampler_->drain([this](std::uint64_t address) { dispatch(address / kPageBytes); }));
  }

  // Reads the log; true when nothing is missing from it since the bound was taken.
  bool is_complete(const Account& account) {
    if (sampler_ == nullptr || !wait_for_faults_of_calls()) return false;
    std::optional<std::int64_t> least;
    for (int attempt = 0; attempt < kReadAttemptsMax; ++attempt) {
      read();
      if (!account.never_sampled_min.has_value()) return false;
      const std::optional<std::int64_t> counted = count_faults(account.whose, counts_text_);
      if (!counted.has_value()) return false;
      const std::int64_t never_sampled_max = *counted - samples_;
      if (never_sampled_max == *account.never_sampled_min) return true;
      // What does not become less is no fault in flight.
      if (least.has_value() && never_sampled_max >= *least) return false;
      least = never_sampled_max;
    }
    return false;
  }

  void take_bound(Account& account) {
    account.never_sampled_min.reset();
    const std::optional<std::int64_t> counted = count_faults(account.whose, counts_text_);
    const std::int64_t own_before = count_own_faults();
    if (!counted.has_value() || !see_other_threads_blocked()) return;
    // To look at the threads takes memory, and that may fault.  This thread's own faults are not in
    // flight now, either.
    const std::int64_t own = count_own_faults() - own_before;
    read();
    account.never_sampled_min = *counted + own - samples_;
  }

  void begin_anew(Account& account) {
    if (sampler_ == nullptr) return;
    if (++account.misses >= account.restart_after_misses) {
      account.misses = 0;
      account.restart_after_misses =
          std::min(account.restart_after_misses * 2, kRestartAfterMissesMax);
      (void)start();  // failing, it leaves no log, and there are only walks
      return;
    }
    take_bound(account);
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

  static constinit std::atomic<FaultLog*> process_log_;  // of this process, or of one it comes from

  const std::uint64_t memory_ = number_of_memory();
  const pid_t process_ = getpid();

  std::mutex mutex_;
  std::unique_ptr<FaultSampler> sampler_;
  std::vector<FaultLogClient*> clients_;
  std::vector<Range> ranges_;  // in order, without overlap

  machine_faults::Text counts_text_{};
  std::int64_t samples_ = 0;  // read since the start
  std::array<Account, 2> accounts_{{{FaultsOf::machine}, {FaultsOf::process}}};
};

constinit std::atomic<FaultLog*> FaultLog::process_log_{nullptr};

Result<std::unique_ptr<FaultLogClient>> FaultLogClient::join(FaultsOf whose) {
  std::unique_ptr<FaultLogClient> client(new FaultLogClient(whose));
  client->log_ = &FaultLog::process();
  if (Status status = client->log_->join(client.get()); !status.ok()) {
    client->log_ = nullptr;
    return status;
  }
  return client;
}

FaultLogClient::~FaultLogClient() {
  // In a child the log that knew this client is the parent's, and stays untouched.
  if (log_ != nullptr && log_->is_this_process()) log_->leave(this);
}

void FaultLogClient::add_range(std::uint64_t first, std::uint64_t end) {
  log_->add_range(this, first, end);
}

void FaultLogClient::remove_range(std::uint64_t first, std::uint64_t end) {
  log_->remove_range(this, first, end);
}

bool FaultLogClient::take(std::vector<std::uint64_t>& pages) { return log_->take(this, pages); }

Status probe_fault_log() {
  Result<std::unique_ptr<FaultLogClient>> client = FaultLogClient::join(FaultsOf::process);
  return client.status();
}

}  // namespace pawl
