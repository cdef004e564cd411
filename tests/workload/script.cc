#include "workload/script.h"

#include <algorithm>
#include <array>

namespace pawl::test {
namespace {

constexpr std::uint64_t kKibi = 1024;
constexpr std::size_t kSmallStoreBytesMax = 200;
constexpr std::size_t kLargeStoreBytesMax = 9000;
constexpr unsigned kLargeStoreEvery = 6;
constexpr unsigned kStoresMax = 10;
constexpr std::size_t kThereAndBackBytes = 100;
constexpr unsigned kSizeChangeParts = 8;  // the file grows by at most this part of the window

// Small files and small journals, so that journals wrap and grow within a short run.
const std::array<Workload, 10> kWorkloads = {{
    {"single", 40000, 16, 64 * kKibi, 2, {.store = 4, .commit_all = 3}},
    {"ranges", 70000, 24, 64 * kKibi, 2, {.store = 6, .commit_all = 1, .commit_some = 4}},
    {"queued",
     70000,
     24,
     256 * kKibi,
     128,
     {.store = 6, .commit_all = 1, .queue_all = 3, .queue_some = 3, .wait = 1}},
    {"rolled_back",
     70000,
     24,
     64 * kKibi,
     2,
     {.store = 6, .commit_all = 2, .queue_all = 1, .roll_back_all = 1, .roll_back_some = 2}},
    {"there_and_back", 20000, 8, 64 * kKibi, 128, {.store = 1, .there_and_back = 2}},
    {"growing", 5000, 64, 64 * kKibi, 2, {.store = 4, .commit_all = 3, .queue_some = 1, .grow = 3}},
    {"shrinking",
     150000,
     64,
     64 * kKibi,
     128,
     {.store = 4, .commit_all = 3, .commit_some = 1, .queue_all = 1, .grow = 2, .shrink = 2}},
    // Each commit of every page is larger than the journal, which grows for it.
    {"oversize",
     160000,
     48,
     64 * kKibi,
     2,
     {.store = 2, .store_in_every_page = 2, .commit_all = 2, .queue_all = 1}},
    // The journal begins small, and its ring grows up to its size.
    {"filling",
     70000,
     24,
     1024 * kKibi,
     128,
     {.store = 4,
      .store_in_every_page = 1,
      .commit_all = 4,
      .queue_some = 1,
      .wait = 1,
      .there_and_back = 1}},
    {"mixed",
     70000,
     48,
     64 * kKibi,
     2,
     {.store = 8,
      .store_in_every_page = 1,
      .commit_all = 3,
      .commit_some = 2,
      .queue_all = 2,
      .queue_some = 2,
      .wait = 1,
      .roll_back_all = 1,
      .roll_back_some = 1,
      .grow = 2,
      .shrink = 1,
      .there_and_back = 1}},
}};

}  // namespace

std::span<const Workload> workloads() { return kWorkloads; }

const Workload* find_workload(const std::string& name) {
  const auto found = std::find_if(kWorkloads.begin(), kWorkloads.end(),
                                  [&](const Workload& workload) { return workload.name == name; });
  return found == kWorkloads.end() ? nullptr : &*found;
}

Content initial_content(const Workload& workload, std::uint64_t seed) {
  Random random(static_cast<Random::result_type>(seed));
  Content content;
  content.write(0, random_bytes(random, workload.initial_bytes));
  return content;
}

Script::Script(const Workload& workload, std::uint64_t seed, Content start)
    : workload_(workload),
      random_(static_cast<Random::result_type>(seed)),
      model_(std::move(start), workload.window_pages),
      planned_size_(model_.size()) {}

Step Script::next() {
  while (planned_.empty()) plan_something();
  Step step = std::move(planned_.front());
  planned_.pop_front();
  switch (step.kind) {
    case Step::Kind::store:
      model_.write(step.offset, step.bytes);
      break;
    case Step::Kind::commit:
    case Step::Kind::queue:
      model_.commit(model_.after_commit({step.offset / kPageBytes, step.length / kPageBytes}));
      commits_ += 1;
      break;
    case Step::Kind::wait:
      break;
    case Step::Kind::roll_back:
      if (step.length == workload_.window_pages * kPageBytes)
        model_.roll_back();
      else
        model_.roll_back({step.offset / kPageBytes, step.length / kPageBytes});
      planned_size_ = model_.size();
      break;
    case Step::Kind::truncate:
      model_.truncate(step.length);
      break;
  }
  return step;
}

Step Script::instead(const Step& failed, FileModel before, std::uint64_t offset,
                     std::span<const std::byte> bytes, const PageRun& pages) {
  model_ = std::move(before);
  if (!bytes.empty()) model_.write(offset, bytes);
  model_.commit(model_.after_commit(pages));
  return {.kind = failed.kind,
          .offset = pages.first * kPageBytes,
          .length = pages.count * kPageBytes,
          .bytes = {}};
}

// Only when nothing is planned: so the model is where the plans begin.
void Script::plan_something() {
  const Mixture& mixture = workload_.mixture;
  const std::uint64_t grown =
      planned_size_ + below(random_, workload_.window_pages / kSizeChangeParts * kPageBytes);
  const std::array<unsigned, 12> weights = {mixture.store,          mixture.store_in_every_page,
                                            mixture.commit_all,     mixture.commit_some,
                                            mixture.queue_all,      mixture.queue_some,
                                            mixture.wait,           mixture.roll_back_all,
                                            mixture.roll_back_some, mixture.grow,
                                            mixture.shrink,         mixture.there_and_back};
  unsigned total = 0;
  for (const unsigned weight : weights) total += weight;
  std::uint64_t choice = below(random_, total);
  std::size_t chosen = 0;
  for (; choice >= weights[chosen]; ++chosen) choice -= weights[chosen];
  switch (chosen) {
    case 0:
      for (std::uint64_t i = 0, count = 1 + below(random_, kStoresMax); i < count; ++i) {
        const bool large = below(random_, kLargeStoreEvery) == 0;
        plan_store(below(random_, planned_size_),
                   1 + below(random_, large ? kLargeStoreBytesMax : kSmallStoreBytesMax));
      }
      break;
    case 1:
      for (std::uint64_t start = 0; start < planned_size_; start += kPageBytes)
        plan_store(start, kPageBytes);
      break;
    case 2:
    case 3:
      plan_pages(Step::Kind::commit, chosen == 2);
      break;
    case 4:
    case 5:
      plan_pages(Step::Kind::queue, chosen == 4);
      break;
    case 6:
      plan({.kind = Step::Kind::wait, .bytes = {}});
      break;
    case 7:
    case 8:
      plan_pages(Step::Kind::roll_back, chosen == 7);
      break;
    case 9:
      plan_truncate(std::min(workload_.window_pages * kPageBytes, grown));
      break;
    case 10:
      plan_truncate(below(random_, planned_size_ + 1));
      break;
    default:
      plan_there_and_back();
  }
}

void Script::plan_store(std::uint64_t offset, std::size_t count) {
  const std::uint64_t stored = std::min<std::uint64_t>(count, planned_size_ - offset);
  if (stored == 0) return;
  plan({.kind = Step::Kind::store, .offset = offset, .bytes = random_bytes(random_, stored)});
}

void Script::plan_pages(Step::Kind kind, bool all) {
  const std::uint64_t first = all ? 0 : below(random_, workload_.window_pages);
  const std::uint64_t count =
      all ? workload_.window_pages : 1 + below(random_, workload_.window_pages - first);
  plan({.kind = kind, .offset = first * kPageBytes, .length = count * kPageBytes, .bytes = {}});
}

void Script::plan_truncate(std::uint64_t size_bytes) {
  plan({.kind = Step::Kind::truncate, .length = size_bytes, .bytes = {}});
  planned_size_ = size_bytes;
}

void Script::plan_there_and_back() {
  const std::uint64_t offset = below(random_, planned_size_);
  std::vector<std::byte> before(
      std::min<std::uint64_t>(kThereAndBackBytes, planned_size_ - offset));
  if (before.empty()) return;
  model_.now().read(offset, before);
  const auto commit = [&] {
    plan_pages(below(random_, 2) == 0 ? Step::Kind::queue : Step::Kind::commit, true);
  };
  commit();
  plan_store(offset, before.size());
  commit();
  plan({.kind = Step::Kind::store, .offset = offset, .bytes = before});
  commit();
}

void Script::plan(Step step) { planned_.push_back(std::move(step)); }

}  // namespace pawl::test
