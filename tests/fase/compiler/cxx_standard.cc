// What C++ programs do in sections besides: two locks at once and shared ones, lambdas, members
// that are virtual or called through pointers, algorithms of the standard library, intrusive
// containers.
#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <tuple>
#include <utility>

#include "crash_run_time.h"

namespace {

struct Account {
  std::mutex lock;
  long money;
  long transfers;
};

// Both, in an order that cannot block.
void transfer(Account& from, Account& to, long money) {
  const std::scoped_lock both(from.lock, to.lock);
  from.money -= money;
  to.money += money;
  ++from.transfers;
  ++to.transfers;
}

// What is done under the lock is given by the caller.
template <class Change>
auto with(std::mutex& lock, Change&& change) {
  const std::lock_guard guard(lock);
  return std::forward<Change>(change)();
}

// Not in the file: when it is released it is not as it was, and here what stays is compared.
std::shared_mutex table_lock;

struct Table {
  std::array<long, 16> values;
  long reads;

  std::optional<long> find(long value) {
    const std::shared_lock guard(table_lock);
    const auto at = std::find(values.begin(), values.end(), value);
    if (at == values.end()) return std::nullopt;
    return at - values.begin();
  }
  void insert(long value) {
    const std::unique_lock guard(table_lock);
    std::rotate(values.begin(), values.begin() + 1, values.end());
    values.back() = value;
    if (value % 3 == 0) std::sort(values.begin(), values.end());
  }
  long sum() {
    const std::shared_lock guard(table_lock);
    return std::accumulate(values.begin(), values.end(), 0L);
  }
};

// A container whose links lie in what it holds.
struct Link {
  Link* next;
};
template <class T>
class List {
 public:
  class Iterator {
   public:
    explicit Iterator(Link* at) : at_(at) {}
    T& operator*() const { return *static_cast<T*>(at_); }
    T* operator->() const { return static_cast<T*>(at_); }
    Iterator& operator++() {
      at_ = at_->next;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    Link* at_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }
  void push(T& element) {
    element.next = first_;
    first_ = &element;
  }
  T* pop() {
    T* const popped = static_cast<T*>(first_);
    if (popped != nullptr) first_ = popped->next;
    return popped;
  }

 private:
  Link* first_;
};

struct Entry : Link {
  char name[12];
  unsigned length;
  long hits;
  std::string_view key() const { return {name, length}; }
};

struct Directory {
  std::mutex lock;
  List<Entry> entries;
  long count;

  bool hit(std::string_view key) {
    const std::lock_guard guard(lock);
    for (Entry& entry : entries) {
      if (entry.key() == key) {
        ++entry.hits;
        return true;
      }
    }
    return false;
  }
  void insert(unsigned number) {
    const std::lock_guard guard(lock);
    void* const memory = pawl_fase_malloc(nullptr, sizeof(Entry));
    if (memory == nullptr) return;
    Entry& entry = *new (memory) Entry{};
    entry.length = 1 + number % 3;
    for (unsigned i = 0; i < entry.length; ++i)
      entry.name[i] = static_cast<char>('a' + number % 26);
    entries.push(entry);
    ++count;
  }
  void remove() {
    const std::lock_guard guard(lock);
    if (Entry* const entry = entries.pop()) {
      --count;
      pawl_fase_free(nullptr, entry);
    }
  }
};

// Called through a table of functions, which is a constant of the program.
struct Rule {
  virtual long apply(long to) const noexcept = 0;
  virtual ~Rule() = default;
};
struct Doubles : Rule {
  long apply(long to) const noexcept override { return 2 * to; }
};
struct Adds : Rule {
  long apply(long to) const noexcept override { return to + 7; }
};
const Doubles doubles;
const Adds adds;
const Rule* rule_of(unsigned number) {
  return number % 2 == 0 ? static_cast<const Rule*>(&doubles) : &adds;
}

struct All {
  Account accounts[3];
  Table table;
  Directory directory;
  std::mutex lock;
  long ruled;
  std::pair<long, unsigned> last;
};

All& all() { return *reinterpret_cast<All*>(ARENA); }

long apply_rule(unsigned number) {
  const Rule* const rule = rule_of(number);
  const std::lock_guard guard(all().lock);
  all().ruled = rule->apply(all().ruled) % 1000;
  all().last = {all().ruled, number};
  return all().ruled;
}

using Member = void (Directory::*)();

void call_member(unsigned number) {
  const Member member = number % 2 == 0 ? &Directory::remove : &Directory::remove;
  (all().directory.*member)();
}

}  // namespace

extern "C" void operation(unsigned number) {
  switch (number % 9) {
    case 0:
      transfer(all().accounts[number % 3], all().accounts[(number + 1) % 3], number);
      break;
    case 1:
      with(all().lock, [&] { return all().ruled += number; });
      break;
    case 2:
      all().table.insert(static_cast<long>(number * 7919 % 23));
      break;
    case 3: {
      const std::optional<long> found = all().table.find(number % 5);
      with(all().lock, [found] { all().ruled ^= found.value_or(-1); });
      break;
    }
    case 4:
      all().directory.insert(number);
      break;
    case 5:
      all().directory.hit(number % 2 == 0 ? "a" : "ee");
      break;
    case 6:
      if (number % 4 == 0) call_member(number);
      break;
    case 7:
      apply_rule(number);
      break;
    case 8: {
      const long sum = all().table.sum();
      with(all().lock, [sum, &ruled = all().ruled] { ruled -= sum; });
      break;
    }
  }
}

int main() { return run_operations(54); }
