// Sections of C++: locks of the standard library by its guards, members, templates.
#include <mutex>

#include "crash_run_time.h"

namespace {

struct Counter {
  std::mutex lock;
  long value;
  long twice;

  void add(long by) {
    const std::lock_guard<std::mutex> guard(lock);
    value += by;
    twice = 2 * value;
  }

  long take() {
    std::unique_lock<std::mutex> guard(lock);
    if (value == 0) return 0;
    const long taken = value;
    value = 0;
    guard.unlock();
    return taken;
  }
};

struct Pair {
  std::mutex first;
  std::mutex second;
  long left;
  long right;

  void move(long by) {
    const std::scoped_lock guard(first);
    const std::lock_guard<std::mutex> other(second);
    left -= by;
    right += by;
  }
};

template <class T>
struct Vector {
  T* data;
  unsigned size;
  unsigned capacity;

  bool push(T value) {
    if (size == capacity && !grow()) return false;
    data[size++] = value;
    return true;
  }

  bool grow() {
    const unsigned larger = capacity == 0 ? 4 : 2 * capacity;
    T* moved = static_cast<T*>(pawl_fase_malloc(nullptr, larger * sizeof(T)));
    if (moved == nullptr) return false;
    for (unsigned i = 0; i < size; ++i) moved[i] = data[i];
    if (data != nullptr) pawl_fase_free(nullptr, data);
    data = moved;
    capacity = larger;
    return true;
  }
};

struct All {
  Counter counter;
  Pair pair;
  std::mutex lock;
  Vector<long> vector;
};

All& all() { return *reinterpret_cast<All*>(ARENA); }

}  // namespace

extern "C" void operation(unsigned number) {
  switch (number % 4) {
    case 0:
      all().counter.add(number);
      break;
    case 1:
      all().pair.move(number);
      break;
    case 2:
      all().counter.take();
      break;
    case 3: {
      const std::lock_guard<std::mutex> guard(all().lock);
      all().vector.push(number);
      break;
    }
  }
}

int main() { return run_operations(40); }
