// The load of `redis-cli --lru-test`: keys by a power law, so that few of them get most of it, and
// as many GETs as SETs, LRU_BATCH of each at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace pawl::bench {

constexpr unsigned kBatch = 250;  // SETs, then as many GETs; sent at once
constexpr double kPowerLawExponent =
    6.2;  // four of five requests go to a fifth of the keys, and more
constexpr unsigned kValueBytes = 5;

// xorshift64*: the same sequence everywhere.
class KvRandom {
 public:
  explicit KvRandom(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// 1 to keys, as redis-cli draws it.
inline std::uint64_t draw_key(KvRandom& random, std::uint64_t keys) {
  const double end = static_cast<double>(keys) + 1;
  const double power = kPowerLawExponent + 1;
  const double drawn = std::pow((std::pow(end, power) - 1) * random.fraction() + 1, 1 / power);
  const double number = end - 1 - std::floor(drawn) + 1;
  return number < 1 ? 1 : static_cast<std::uint64_t>(number);
}

inline std::string key_text(std::uint64_t number) { return "lru:" + std::to_string(number); }

inline std::string draw_value(KvRandom& random) {
  std::string value(kValueBytes, 'A');
  for (char& letter : value) letter = static_cast<char>('A' + random.next() % ('z' - 'A'));
  return value;
}

}  // namespace pawl::bench
