#include "snapshot/worker.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "common/background.h"
#include "common/failure.h"
#include "snapshot/workload.h"

namespace pawl::bench {
namespace {

using Clock = std::chrono::steady_clock;

// More than a turn inserts before others remove: what a structure must have room for.
constexpr std::uint64_t kRoomFactor = 2;
constexpr std::uint64_t kRoomMin = 50'000;

std::unique_ptr<Structure> make(const std::string& module, const StructureSetup& setup) {
  const std::string path = module_path(module);
  if (path.empty()) throw Unavailable("snapshot-" + module + ".so was not built");
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  void* const function = ::dlsym(library, "make_structure");
  if (function == nullptr) throw std::runtime_error(::dlerror());
  return std::unique_ptr<Structure>(reinterpret_cast<MakeStructure*>(function)(&setup));
}

// Pawl and libpmem read them when they are first used.
void set_environment(const Profile& profile) {
  ::setenv("PAWL_EMULATE_LINE_NS", std::to_string(profile.line_ns).c_str(), 1);
  ::setenv("PAWL_EMULATE_FENCE_NS", std::to_string(profile.fence_ns).c_str(), 1);
  ::setenv("PMEM_IS_PMEM_FORCE", "1", 1);
}

class Measured {
 public:
  Measured(const SnapshotKind& kind, const Profile& profile, Form form, std::uint64_t items,
           const std::string& directory)
      : directory_(directory), requests_(form, items) {
    set_environment(profile);
    const std::string path = directory + "/" + kind.name;
    StructureSetup setup{kind.name,       path.c_str(),    form, kRoomFactor * items + kRoomMin,
                         profile.line_ns, profile.fence_ns};
    structure_ = make(kind.module, setup);
    setup.system = kNone;
    twin_ = make("plain", setup);
    const std::vector<Request> fill = requests_.to_fill();
    structure_->fill(fill.data(), fill.size());
    twin_->fill(fill.data(), fill.size());
    settle(directory_);
  }

  SnapshotTurnResult turn(const SnapshotTurn& turn) {
    const Task& task = all_tasks()[turn.task];
    SnapshotTurnResult result;
    std::vector<std::vector<Request>> served(turn.samples + 1);
    std::vector<std::uint64_t> sums;
    std::uint64_t operations_of_sample = 0;
    for (auto& sample : served) {
      requests_.next(task, turn.requests, sample);
      operations_of_sample = 0;
      for (const Request& request : sample)
        operations_of_sample += requests_.operations_of(request);
    }
    MediumUse before;
    for (const auto& sample : served) {
      const auto begin = Clock::now();
      const std::uint64_t sum = structure_->serve(sample.data(), sample.size());
      const double time_us =
          std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
      sums.push_back(sum);
      // The first sample finds cold caches, and is not counted.
      if (sums.size() == 1)
        before = structure_->medium_use();
      else
        result.times_us.push_back(time_us / static_cast<double>(operations_of_sample));
    }
    const MediumUse after = structure_->medium_use();
    result.operations = static_cast<double>(operations_of_sample * turn.samples);
    result.use = {after.lines - before.lines, after.fences - before.fences,
                  after.logged_bytes - before.logged_bytes};
    result.settle_us = settle(directory_);
    for (std::size_t i = 0; i < served.size(); ++i) {
      if (twin_->serve(served[i].data(), served[i].size()) != sums[i])
        throw std::runtime_error(
            fmt::format("{}, {}: it does not hold what it must", task.workload, task.operation));
    }
    return result;
  }

 private:
  const std::string directory_;
  Requests requests_;
  std::unique_ptr<Structure> structure_;
  // Plain memory that gets the same requests after each turn, and must read the same.
  std::unique_ptr<Structure> twin_;
};

// What of a result goes before its times.
struct Head {
  double operations = 0;
  double settle_us = 0;
  MediumUse use;
};

}  // namespace

SnapshotWorker::SnapshotWorker(const SnapshotKind& kind, const Profile& profile, Form form,
                               std::uint64_t items, const std::string& directory)
    : kind_(kind), process_(kind.name, [&](Channel& channel, const Process::Ready& ready) {
        Measured measured(kind, profile, form, items, directory);
        ready();
        SnapshotTurn turn;
        while (channel.receive(turn)) {
          const SnapshotTurnResult result = measured.turn(turn);
          if (!channel.send(Head{result.operations, result.settle_us, result.use}) ||
              !channel.send_all(result.times_us))
            return;
        }
      }) {}

SnapshotTurnResult SnapshotWorker::take(const SnapshotTurn& turn) {
  Channel& channel = process_.channel();
  Head head;
  SnapshotTurnResult result;
  if (!channel.send(turn) || !channel.receive(head) || !channel.receive_all(result.times_us))
    process_.fail();
  result.operations = head.operations;
  result.settle_us = head.settle_us;
  result.use = head.use;
  return result;
}

}  // namespace pawl::bench
