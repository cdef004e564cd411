// A game with a container in a heap: rounds, each in a process of its own, of random operations,
// syncs and rollbacks.  What a process finds it compares with a model of the standard library, on
// which it has played all rounds before.
#pragma once

#include <unistd.h>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>

#include <pawl/heap.hpp>

#include "steps.h"

namespace stl_test {

inline constexpr std::size_t kStepsMax = 200;
// One in so many actions.
inline constexpr std::size_t kSyncEvery = 20;
inline constexpr std::size_t kRollbackEvery = 50;

struct Game {
  std::string path;
  std::uint64_t seed = 0;
  std::uint64_t round = 0;  // rounds before it were played
  bool last = false;        // nothing is played; the root is removed
};

// Plays a round; the end may leave something that was not synced.
template <class Container, class Sync, class Rollback>
void play_round(const Game& game, std::uint64_t round, Container& container, Sync sync,
                Rollback rollback) {
  Random random(game.seed * 1000 + round);
  for (std::size_t left = random.below(kStepsMax); left > 0; --left) {
    if (random.below(kSyncEvery) == 0)
      sync();
    else if (random.below(kRollbackEvery) == 0)
      rollback();
    else
      step(random, container);
  }
  if (random.below(2) == 0) sync();
}

template <class Model>
Model model_before(const Game& game) {
  Model model;
  Model committed;
  for (std::uint64_t round = 0; round < game.round; ++round) {
    play_round(game, round, model, [&] { committed = model; }, [&] { model = committed; });
    model = committed;
  }
  return model;
}

inline int complain(const std::string& what) {
  std::cerr << what << '\n';
  return 1;
}

// Not what verify() says: in memory that is allocated and not in use, such as a vector's spare
// room, it finds what local lists and trees left there, whose nodes point to their heads on the
// stack.
inline int complain_of(const pawl::heap& heap) {
  const long faults = heap.check([](std::string_view fault) { complain(std::string(fault)); });
  return faults == 0 ? 0 : complain("the heap has faults");
}

template <class Container, class Model>
int play(const Game& game) {
  pawl::heap heap(game.path);
  auto& container = heap.root<Container>();
  if (game.round == 0) heap.sync();
  const Model model = model_before<Model>(game);
  if (const std::string found = text(container), expected = text(model); found != expected)
    return complain("found:    " + found + "\nexpected: " + expected);
  if (const int found = complain_of(heap); found != 0) return found;
  if (game.last) {
    heap.remove<Container>("root");
    const auto left = heap.info().blocks_used;
    return left == 0 ? 0 : complain(std::to_string(left) + " blocks are left");
  }
  play_round(game, game.round, container, [&] { heap.sync(); }, [&] { heap.rollback(); });
  if (const int found = complain_of(heap); found != 0) return found;
  // Every other process ends as a crash ends it.
  if (game.round % 2 == 1) ::_exit(0);
  heap.close();
  return 0;
}

using Play = int (*)(const Game&);
using Kinds = std::map<std::string, Play>;

Kinds kinds_of_pawl();
Kinds kinds_of_pmr();
Kinds kinds_of_boost();

}  // namespace stl_test
