#include "stores/workload.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace pawl::bench {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

// SplitMix64: a well-mixed number from any number.
std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
  return number ^ (number >> 31);
}

}  // namespace

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::insert:
      return "insert";
    case Operation::replace:
      return "replace";
    case Operation::get:
      return "get";
    case Operation::erase:
      return "delete";
  }
  return "";
}

std::string key_text(std::uint64_t key) { return fmt::format("{:016}", key); }

void make_value(std::uint64_t key, std::uint32_t version, std::string& value) {
  value.resize(kValueBytes);
  std::uint64_t state = mixed(key * kGolden + version);
  for (std::size_t at = 0; at < kValueBytes; at += sizeof state) {
    state += kGolden;
    const std::uint64_t word = mixed(state);
    std::memcpy(value.data() + at, &word, sizeof word);
  }
}

std::vector<std::uint32_t> order_of_keys(const Workload& workload, Operation operation) {
  std::vector<std::uint32_t> order(workload.keys);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(workload.seed * kOperations + static_cast<std::uint32_t>(operation));
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

}  // namespace pawl::bench
