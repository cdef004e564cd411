#include "stores/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "common/background.h"

namespace pawl::bench {
namespace {

using Clock = std::chrono::steady_clock;

// A batch of what is not timed.
constexpr std::size_t kFillBatch = 1000;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

Session::Session(const StoreKind& kind, const std::string& directory, const Workload& workload)
    : kind_(kind),
      setup_{directory, workload.keys, kValueBytes},
      workload_(workload),
      store_(kind.open(setup_)),
      versions_(workload.keys, 0) {
  for (std::uint64_t key = 0; key < workload.keys; ++key) key_texts_.push_back(key_text(key));
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    orders_[i] = order_of_keys(workload, static_cast<Operation>(i));
    if (static_cast<Operation>(i) == Operation::insert) continue;
    orders_[i].resize(workload.timed);
  }
  auto& insertions = orders_[static_cast<std::size_t>(Operation::insert)];
  const auto timed = insertions.end() - static_cast<std::ptrdiff_t>(workload.timed);
  fill({insertions.begin(), timed});
  insertions.erase(insertions.begin(), timed);
  settle(setup_.directory);
}

std::vector<double> Session::turn(Operation operation, std::uint64_t commits, TurnCosts& costs) {
  const auto& order = orders_[static_cast<std::size_t>(operation)];
  std::size_t& position = positions_[static_cast<std::size_t>(operation)];
  std::vector<double> times_us;
  const JournalUse journal_before = store_->journal_use();
  const Usage before = usage();
  for (std::uint64_t i = 0; i < commits && position < order.size(); ++i) {
    const std::size_t count = std::min<std::size_t>(workload_.batch, order.size() - position);
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(position);
    position += count;
    if (workload_.think_us > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(workload_.think_us));
    times_us.push_back(commit(operation, {first, first + static_cast<std::ptrdiff_t>(count)}));
  }
  const Usage after = usage();
  costs.settle_us = settle(setup_.directory);
  const Usage settled = usage();
  // Without the waiting for others, which is the benchmark's.
  costs.processor_us =
      (settled.processor_us - before.processor_us) - (settled.thread_us - after.thread_us);
  costs.written_bytes = settled.written_bytes - before.written_bytes;
  const JournalUse journal = store_->journal_use();
  costs.logged_bytes = journal.bytes - journal_before.bytes;
  costs.checkpoints = journal.checkpoints - journal_before.checkpoints;
  return times_us;
}

double Session::commit(Operation operation, const std::vector<std::uint32_t>& keys) {
  if (operation == Operation::get) {
    double time_us = 0;
    for (const std::uint32_t key : keys) time_us += read(key);
    return time_us;
  }
  if (operation != Operation::erase) {
    values_.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
      make_value(keys[i], versions_[keys[i]] + 1, values_[i]);
  }
  const auto start = Clock::now();
  if (workload_.batch > 1) store_->begin_batch();
  change(operation, keys);
  if (workload_.batch > 1) store_->commit_batch();
  const double time_us = microseconds_since(start);
  for (const std::uint32_t key : keys)
    versions_[key] = operation == Operation::erase ? 0 : versions_[key] + 1;
  return time_us;
}

void Session::change(Operation operation, const std::vector<std::uint32_t>& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = key_texts_[keys[i]];
    if (operation == Operation::erase)
      store_->erase(key);
    else
      store_->put(key, values_[i]);
  }
}

double Session::read(std::uint32_t key) {
  const auto start = Clock::now();
  const bool is_there = store_->get(key_texts_[key], found_);
  const double time_us = microseconds_since(start);
  if (is_there != (versions_[key] != 0)) fail(key, is_there ? "was deleted" : "is lost");
  if (is_there) {
    make_value(key, versions_[key], expected_);
    if (found_ != expected_) fail(key, "has another value than was put last");
  }
  return time_us;
}

void Session::check() {
  for (std::uint32_t key = 0; key < workload_.keys; ++key) read(key);
  // What a check sets going is not the next system's to bear, either.
  settle(setup_.directory);
}

void Session::check_reopened() {
  if (kind_.role == Role::bound) return;
  std::vector<std::uint32_t> deleted;
  for (std::uint32_t key = 0; key < workload_.keys; ++key) {
    if (versions_[key] == 0) deleted.push_back(key);
  }
  fill(deleted);
  store_.reset();
  store_ = kind_.open(setup_);
  check();
}

void Session::fill(const std::vector<std::uint32_t>& keys) {
  std::string value;
  for (std::size_t first = 0; first < keys.size(); first += kFillBatch) {
    const std::size_t end = std::min(first + kFillBatch, keys.size());
    store_->begin_batch();
    for (std::size_t i = first; i < end; ++i) {
      make_value(keys[i], ++versions_[keys[i]], value);
      store_->put(key_texts_[keys[i]], value);
    }
    store_->commit_batch();
  }
}

void Session::fail(std::uint32_t key, const char* how) const {
  throw std::runtime_error(fmt::format("key {} {}", key_texts_[key], how));
}

}  // namespace pawl::bench
