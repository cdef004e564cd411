// What C++ adds: objects, exceptions, the standard library's templates.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "cases.h"

namespace {

volatile int hundred = 100;

struct Base {
  virtual ~Base() { destroyed = 1; }
  virtual void set(int value) { number = value; }
  int number = 5;
  int destroyed = 0;
};
struct Derived : Base {
  explicit Derived(int value) : more{value, value + 1, value + 2} {}
  void set(int value) override { more[2] = value; }
  long more[3];
};

CASE(constructed_in_place, 0) {
  auto* made = new (a + 64) Derived(hundred);
  collect();
  Base* volatile base = made;
  base->set(7);
  collect();
  base->~Base();
}

CASE(value_initialised, 0) {
  struct Many {
    int numbers[50];
    char name[3];
  };
  new (a + 64) Many{};
}

// A mark is there before an exception leaves.
[[gnu::noinline]] void throws_when(bool wanted) {
  if (wanted) throw std::runtime_error("wanted");
}
CASE(store_before_exception, 0) {
  try {
    a[5] = 1;
    a[6] = 2;
    throws_when(hundred == 100);
    a[7] = 3;
  } catch (const std::exception&) {
    collect();
    a[8] = 4;
  }
  collect();
}
CASE(loop_left_by_exception, 0) {
  const int n = hundred;
  try {
    for (int i = 0; i < n; ++i) {
      a[i] = static_cast<char>(i + 1);
      throws_when(i == 77);
    }
  } catch (const std::exception&) {
    collect();
  }
}
struct Restores {
  explicit Restores(char* where) : to(where) { *to = 3; }
  ~Restores() { *to = 4; }
  char* to;
};
CASE(store_in_unwinding, 0) {
  try {
    const Restores restores(a + 64);
    throws_when(true);
  } catch (const std::exception&) {
    collect();
  }
}

struct Wide {
  long words[20];
};
[[gnu::noinline]] Wide made_or_thrown(int seed) {
  throws_when(seed < 0);
  Wide made{};
  std::iota(made.words, made.words + 20, seed);
  return made;
}
CASE(returned_by_invoke, 0) {
  try {
    *reinterpret_cast<Wide*>(a + 64) = made_or_thrown(hundred);
    collect();
    new (a + 1024) Wide(made_or_thrown(hundred));
    collect();
    new (a + 2048) large(make_large(hundred));
    collect();
    *reinterpret_cast<Wide*>(a + 64) = made_or_thrown(-hundred);
  } catch (const std::exception&) {
    collect();
  }
}

CASE(algorithms, 0) {
  int* const numbers = reinterpret_cast<int*>(a);
  std::iota(numbers, numbers + 500, 17);
  collect();
  std::reverse(numbers, numbers + 500);
  collect();
  std::transform(numbers, numbers + 500, numbers, [](int x) { return x * 7919 % 1009; });
  collect();
  std::sort(numbers, numbers + 500);
  collect();
  std::rotate(numbers, numbers + 123, numbers + 500);
  collect();
  std::fill(numbers, numbers + 100, 3);
  std::fill_n(a + 10000, hundred, 'x');
  std::copy(a + 10000, a + 10050, a + 20001);
  collect();
  std::swap_ranges(a, a + 333, a + 5000);
}

CASE(library_types, 0) {
  auto& pair = *new (a + 64) std::pair<int, double>(1, 2.5);
  auto& tuple = *new (a + 128) std::tuple<char, long, short>('x', 3, 4);
  auto& array = *new (a + 256) std::array<int, 17>{};
  auto& maybe = *new (a + 512) std::optional<long>();
  auto& either = *new (a + 640) std::variant<int, double>(4);
  collect();
  std::swap(pair, *new (a + 768) std::pair<int, double>(3, 4.5));
  std::get<1>(tuple) += hundred;
  array.fill(static_cast<int>(hundred));
  maybe = hundred;
  either = 2.5;
  collect();
  maybe.reset();
}

// An allocator that gives out the arena.
template <typename T>
struct ArenaAllocator {
  using value_type = T;
  char* base;
  std::size_t* used;
  ArenaAllocator(char* first, std::size_t* counter) : base(first), used(counter) {}
  template <typename U>
  ArenaAllocator(const ArenaAllocator<U>& other) : base(other.base), used(other.used) {}
  T* allocate(std::size_t count) {
    const std::size_t at = (*used + alignof(T) - 1) / alignof(T) * alignof(T);
    *used = at + count * sizeof(T);
    if (*used > kArenaBytes) throw std::bad_alloc();
    return reinterpret_cast<T*>(base + at);
  }
  void deallocate(T*, std::size_t) {}
  template <typename U>
  bool operator==(const ArenaAllocator<U>& other) const {
    return base == other.base;
  }
};

CASE(vector_in_arena, 0) {
  std::size_t used = 0;
  std::vector<long, ArenaAllocator<long>> numbers{ArenaAllocator<long>(a, &used)};
  for (int i = 0; i < 200; ++i) {
    numbers.push_back(i * i + 1);
    if (i % 10 == 0) collect();
  }
  numbers.insert(numbers.begin() + 50, 7);
  collect();
  numbers.erase(numbers.begin() + 10, numbers.begin() + 90);
  collect();
  numbers.resize(300, 5);
  collect();
  numbers.assign(100, 8);
}

CASE(member_pointer, 0) {
  int Base::* volatile member = &Base::destroyed;
  auto* made = new (a + 64) Base;
  made->*member = 7;
}

CASE(atomic_object, 0) {
  auto& number = *new (a + 64) std::atomic<long>(3);
  number.fetch_add(7);
  long expected = 10;
  number.compare_exchange_weak(expected, 11);
  number |= 64;
  number.store(5, std::memory_order_release);
}

// What one thread publishes, another may commit at once: the marks come first.
CASE(published_to_a_thread, 0) {
  static std::atomic<int> turn;
  constexpr int kTurns = 2000;
  turn = 0;
  std::thread committer([] {
    for (int i = 0; i < kTurns; ++i) {
      while (turn.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      collect();
      turn.store(2 * i + 2, std::memory_order_release);
    }
  });
  const int n = hundred;
  for (int i = 0; i < kTurns; ++i) {
    for (int j = 0; j < n; ++j) a[j] = static_cast<char>(i + j);
    a[3000] = static_cast<char>(i);
    a[5000] = static_cast<char>(i + 1);
    turn.store(2 * i + 1, std::memory_order_release);
    while (turn.load(std::memory_order_acquire) != 2 * i + 2) {
    }
  }
  committer.join();
}

}  // namespace
