// A process whose threads allocate, free and resize while it syncs, rolls back and grows its heap,
// killed again and again: each time the heap is as a sync told that it would be, the last that was
// acknowledged or the one that was under way.
//
//   heap_killed --work HEAP SEED    is that process: it tells what it finds, and what each sync is
//                                   to make durable before and after
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>

#include <gtest/gtest.h>

#include "crash/seeds.h"
#include "pawl/heap.h"
#include "support/killed_process.h"
#include "support/temporary_directory.h"
#include "support/test_size.h"
#include "workload/random.h"

namespace pawl::test {
namespace {

constexpr unsigned kKillsByDefault = at_size(24U, 60U);
constexpr unsigned kKillsOfHeap = 12;  // then a new one, which grows anew
constexpr unsigned kWordsMax = 6;      // before a kill, and then
constexpr int kMicrosecondsMax = 5'000;
constexpr std::uint64_t kSizeBytesMax = std::uint64_t{256} << 20;
constexpr unsigned kThreads = 3;
constexpr std::uint64_t kNodesMax = 300;  // of a thread

// A block: what it is to hold follows from its number.
struct Node {
  Node* next;
  std::uint64_t number;
  std::uint64_t payload_bytes;
  unsigned char* payload() { return reinterpret_cast<unsigned char*>(this + 1); }
};
struct List {
  Node* first;
  std::uint64_t nodes;
  std::uint64_t numbers;  // given so far
};
struct Everything {
  std::uint64_t syncs;
  std::array<List, kThreads> lists;
};

// What is told of a state.
struct Told {
  enum class When : std::uint64_t { found, begun, done } when;
  std::uint64_t syncs;
  std::uint64_t digest;  // of all blocks
  bool same_as(const Told& other) const { return syncs == other.syncs && digest == other.digest; }
};

std::uint64_t mix(std::uint64_t sum, std::uint64_t word) {
  sum = (sum ^ word) * 0x9e3779b97f4a7c15;
  return sum ^ (sum >> 29);
}

void fill(Node& node) {
  std::memset(node.payload(), static_cast<int>(node.number % 251), node.payload_bytes);
}

std::uint64_t digest_of(const Everything& all) {
  std::uint64_t sum = all.syncs;
  for (const List& list : all.lists) {
    sum = mix(mix(sum, list.nodes), list.numbers);
    for (const Node* node = list.first; node != nullptr; node = node->next)
      sum = mix(mix(mix(sum, node->number), node->payload_bytes),
                reinterpret_cast<std::uintptr_t>(node));
  }
  return sum;
}

// Empty, or what is wrong with a heap that was found.
std::string examine(pawl_heap* heap, Everything& all) {
  std::string wrong;
  pawl_heap_check(
      heap, [](void* context, const char* text) { *static_cast<std::string*>(context) += text; },
      &wrong);
  if (!wrong.empty()) return wrong;
  std::uint64_t blocks = 1;
  for (List& list : all.lists) {
    std::uint64_t nodes = 0;
    for (Node* node = list.first; node != nullptr; node = node->next, ++nodes) {
      if (pawl_heap_usable_size(heap, node) < sizeof *node + node->payload_bytes)
        return "a node is no block";
      for (std::uint64_t i = 0; i < node->payload_bytes; ++i)
        if (node->payload()[i] != node->number % 251) return "a node has other bytes";
    }
    if (nodes != list.nodes) return "a list has other nodes";
    blocks += nodes;
  }
  pawl_heap_information information;
  if (pawl_heap_info(heap, &information) != 0) return pawl_last_error();
  return information.blocks_used == blocks ? "" : "there are blocks that nobody has";
}

class Work {
 public:
  Work(pawl_heap* heap, Everything& all, unsigned seed) : heap_(heap), all_(all), random_(seed) {}

  [[noreturn]] void run() {
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < kThreads; ++number)
      threads.emplace_back([this, number, seed = random_()] { work(number, Random(seed)); });
    for (;;) {
      std::this_thread::sleep_for(std::chrono::microseconds(below(random_, 1'500)));
      const std::lock_guard turn(turn_);
      const std::unique_lock alone(stores_);
      if (below(random_, 10) == 0) {
        require(pawl_heap_rollback(heap_) == 0);
        continue;
      }
      all_.syncs += 1;
      const std::uint64_t digest = digest_of(all_);
      tell(Told{Told::When::begun, all_.syncs, digest});
      require(pawl_heap_sync(heap_) == 0);
      tell(Told{Told::When::done, all_.syncs, digest});
    }
  }
  static void require(bool right) {
    if (right) return;
    std::fprintf(stderr, "%s\n", pawl_last_error());
    ::_exit(1);
  }

 private:
  // All that a thread knows is in the heap, so that a rollback takes it back, too.
  [[noreturn]] void work(unsigned number, Random random) {
    for (;;) {
      // Whoever is to be alone holds this one meanwhile, or would wait for ever.
      turn_.lock();
      turn_.unlock();
      const std::shared_lock storing(stores_);
      List& list = all_.lists[number];
      const std::uint64_t chance = below(random, 10);
      if (list.nodes < kNodesMax && chance < 6)
        push(list, random);
      else if (list.first != nullptr && chance < 8)
        resize_first(list, random);
      else if (list.first != nullptr)
        pop(list);
    }
  }
  static std::uint64_t draw_payload(Random& random) {
    if (below(random, 300) == 0) return below(random, 6'000'000);
    return below(random, 20) == 0 ? below(random, 60'000) : below(random, 1'000);
  }
  void push(List& list, Random& random) {
    const std::uint64_t payload_bytes = draw_payload(random);
    auto* const node = static_cast<Node*>(pawl_heap_malloc(heap_, sizeof(Node) + payload_bytes));
    if (node == nullptr) return require(errno == ENOMEM);
    *node = {list.first, ++list.numbers, payload_bytes};
    fill(*node);
    list.first = node;
    list.nodes += 1;
  }
  void resize_first(List& list, Random& random) {
    const std::uint64_t payload_bytes = draw_payload(random);
    auto* const node =
        static_cast<Node*>(pawl_heap_realloc(heap_, list.first, sizeof(Node) + payload_bytes));
    if (node == nullptr) return require(errno == ENOMEM);
    node->payload_bytes = payload_bytes;
    fill(*node);
    list.first = node;
  }
  void pop(List& list) {
    Node* const gone = list.first;
    list.first = gone->next;
    list.nodes -= 1;
    require(pawl_heap_free(heap_, gone) == 0);
  }

  pawl_heap* const heap_;
  Everything& all_;
  Random random_;
  std::mutex turn_;
  std::shared_mutex stores_;
};

int work(const char* path, unsigned seed) {
  pawl_heap_options options;
  Work::require(pawl_heap_options_init(&options) == 0);
  options.size_bytes_max = kSizeBytesMax;
  options.mapping.journal_size_bytes = 64 << 10 << 2 * (seed % 5);
  options.mapping.apply = seed % 2 == 0 ? PAWL_APPLY_ASYNC : PAWL_APPLY_EAGER;
  options.mapping.tracker = seed / 2 % 2 == 0 ? PAWL_TRACKER_AUTO : PAWL_TRACKER_FAULT;
  pawl_heap* const heap = pawl_heap_open(path, &options);
  Work::require(heap != nullptr);
  auto* all = static_cast<Everything*>(pawl_heap_root(heap));
  if (all == nullptr) {
    all = static_cast<Everything*>(pawl_heap_calloc(heap, 1, sizeof(Everything)));
    Work::require(all != nullptr && pawl_heap_set_root(heap, all) == 0 &&
                  pawl_heap_sync(heap) == 0);
  }
  if (const std::string wrong = examine(heap, *all); !wrong.empty()) {
    std::fprintf(stderr, "%s\n", wrong.c_str());
    return 1;
  }
  tell(Told{Told::When::found, all->syncs, digest_of(*all)});
  Work(heap, *all, seed).run();
}

class HeapKilled : public testing::Test {
 protected:
  // Mostly some words later, so that there is something to kill.
  std::vector<Told> work_and_kill(const std::string& path, bool at_once) {
    const std::string seed = std::to_string(random_());
    const std::size_t words = at_once ? 0 : 1 + below(random_, kWordsMax);
    const std::chrono::microseconds later(below(random_, kMicrosecondsMax));
    return run_and_kill<Told>({"--work", path, seed}, words, later);
  }

  TemporaryDirectory directory_;
  Random random_{std::random_device{}()};
};

TEST_F(HeapKilled, WhatIsFoundIsTheLastSyncOrTheOneUnderWay) {
  const unsigned kills = environment_number("PAWL_CRASH_COUNT", kKillsByDefault);
  unsigned while_working = 0;
  unsigned syncs = 0;
  unsigned within_a_sync = 0;
  std::optional<Told> done;
  std::optional<Told> begun;
  for (unsigned kill = 0; kill < kills && !HasFailure(); ++kill) {
    const std::string path = directory_ / ("heap " + std::to_string(kill / kKillsOfHeap));
    if (kill % kKillsOfHeap == 0 && kill > 0)
      std::filesystem::remove(directory_ / ("heap " + std::to_string(kill / kKillsOfHeap - 1)));
    if (kill % kKillsOfHeap == 0) done = begun = std::nullopt;
    const std::vector<Told> told = work_and_kill(path, below(random_, 4) == 0);
    for (const Told& one : told) {
      if (one.when == Told::When::found) {
        EXPECT_TRUE(!done.has_value() || one.same_as(*done) ||
                    (begun.has_value() && one.same_as(*begun)))
            << "kill " << kill << ": sync " << one.syncs << " is found, which is neither "
            << done->syncs << " nor the one under way";
      }
      if (one.when == Told::When::begun) begun = one;
      if (one.when != Told::When::begun) {
        done = one;
        begun = std::nullopt;
      }
    }
    if (told.size() > 1) ++while_working;
    if (!told.empty() && told.back().when == Told::When::begun) ++within_a_sync;
    syncs += static_cast<unsigned>(told.size()) / 2;
  }
  EXPECT_GT(while_working, 0u);
  std::printf("%u kills, %u of them within a sync, and %u syncs\n", kills, within_a_sync, syncs);
}

}  // namespace
}  // namespace pawl::test

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--work")
    return pawl::test::work(argv[2], static_cast<unsigned>(std::stoul(argv[3])));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
