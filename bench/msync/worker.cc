#include "msync/worker.h"

#include <chrono>
#include <thread>
#include <utility>

namespace pawl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSamplesMax = 1 << 16;  // in one turn
// The first commits of a turn find cold caches and an idle disk, and are not counted.
constexpr std::size_t kLeadIn = 2;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

std::vector<Sample> measure(System& system, const Turn& turn) {
  std::vector<Sample> samples;
  const auto end = Clock::now() + std::chrono::microseconds(turn.duration_us);
  std::size_t commits = 0;
  while (samples.size() < kSamplesMax &&
         (Clock::now() < end || samples.size() < turn.commits_min)) {
    if (turn.shape.think_us > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(turn.shape.think_us));
    system.prepare(turn.shape);
    const auto start = Clock::now();
    system.store(turn.shape);
    const auto stored = Clock::now();
    system.commit(turn.shape);
    const auto committed = Clock::now();
    if (++commits > kLeadIn)
      samples.push_back({microseconds(stored - start), microseconds(committed - stored)});
  }
  return samples;
}

void serve(Channel& channel, const MakeSystem& make, const Process::Ready& ready) {
  const std::unique_ptr<System> system = make();
  ready();
  Turn turn;
  while (channel.receive(turn)) {
    const System::Logged before = system->logged();
    const std::vector<Sample> samples = measure(*system, turn);
    const System::Logged after = system->logged();
    system->settle();
    const System::Logged logged{after.commits - before.commits, after.bytes - before.bytes};
    if (!channel.send(logged) || !channel.send_all(samples)) return;
  }
}

}  // namespace

Worker::Worker(std::string name, const MakeSystem& make)
    : process_(std::move(name), [&](Channel& channel, const Process::Ready& ready) {
        serve(channel, make, ready);
      }) {}

TurnResult Worker::take(const Turn& turn) {
  TurnResult result;
  Channel& channel = process_.channel();
  if (!channel.send(turn) || !channel.receive(result.logged) ||
      !channel.receive_all(result.samples)) {
    process_.fail();
  }
  return result;
}

}  // namespace pawl::bench
