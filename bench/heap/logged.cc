#include "heap/logged.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "pawl/heap.hpp"

namespace pawl::bench {

std::vector<Logged> measure_logged(const std::string& directory, std::uint32_t keys,
                                   std::uint32_t value_bytes) {
  pawl::heap heap(directory + "/logged-" + std::to_string(value_bytes) + ".heap");
  auto& map = heap.root<pawl::map<pawl::string, pawl::string>>();
  heap.sync();
  std::mt19937 random(1);
  std::vector<std::uint32_t> order(keys);
  std::iota(order.begin(), order.end(), 0);
  std::string value(value_bytes, '\0');
  const auto draw_value = [&]() -> const std::string& {
    std::generate(value.begin(), value.end(), [&] { return static_cast<char>(random()); });
    return value;
  };
  const auto key_of = [](std::uint32_t number) { return "key" + std::to_string(number); };
  std::vector<Logged> rows;
  const auto each = [&](const char* operation, const std::function<void(std::uint32_t)>& act) {
    std::shuffle(order.begin(), order.end(), random);
    const pawl_statistics before = heap.statistics();
    for (const std::uint32_t number : order) {
      act(number);
      heap.sync();
    }
    const pawl_statistics after = heap.statistics();
    const auto mean = [&](std::uint64_t pawl_statistics::* counter) {
      return static_cast<double>(after.*counter - before.*counter) / keys;
    };
    rows.push_back({operation, mean(&pawl_statistics::dirty_pages),
                    mean(&pawl_statistics::bytes_changed), mean(&pawl_statistics::bytes_logged)});
  };
  each("insert", [&](std::uint32_t number) {
    map.emplace(std::string_view(key_of(number)), std::string_view(draw_value()));
  });
  each("replace", [&](std::uint32_t number) {
    map.find(key_of(number))->second = std::string_view(draw_value());
  });
  each("delete", [&](std::uint32_t number) { map.erase(map.find(key_of(number))); });
  return rows;
}

}  // namespace pawl::bench
