#include "torture/operations.h"

#include <random>

namespace pawl::retrofit {
namespace {

constexpr unsigned kKeysChanged = 2000;    // besides what was there to begin with
constexpr unsigned kSmallBytesMax = 300;   // of a value
constexpr unsigned kLargeBytesMax = 9000;  // more than two pages, so that records move

Change change(std::mt19937_64& random, unsigned long number) {
  Change made;
  made.key = "torture-" + std::to_string(random() % kKeysChanged);
  const unsigned kind = static_cast<unsigned>(random() % 10);
  made.kind = kind < 6 ? Change::Kind::set : kind < 8 ? Change::Kind::append : Change::Kind::remove;
  // Mostly small, at times larger than a page, so that records move and the file grows.
  const std::size_t size =
      random() % 20 == 0 ? random() % kLargeBytesMax : random() % kSmallBytesMax;
  made.value =
      std::to_string(number) + ":" + std::string(size, static_cast<char>('a' + number % 26));
  return made;
}

}  // namespace

Operation operation(unsigned long seed, unsigned long number) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  const unsigned changes =
      random() % 2 == 0 ? 1 : 2 + static_cast<unsigned>(random() % (kChangesMax - 1));
  Operation made;
  for (unsigned i = 0; i < changes; ++i) made.push_back(change(random, number));
  return made;
}

void perform(const Operation& operation, Model& model) {
  for (const Change& change : operation) {
    switch (change.kind) {
      case Change::Kind::set:
        model[change.key] = change.value;
        break;
      case Change::Kind::append:
        model[change.key] += change.value;
        break;
      case Change::Kind::remove:
        model.erase(change.key);
        break;
    }
  }
}

Model made_records(unsigned long count) {
  Model records;
  for (unsigned long number = 0; number < count; ++number)
    records["record-" + std::to_string(number)] = std::to_string(number);
  return records;
}

}  // namespace pawl::retrofit
