#include "common/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace pawl::bench {

void print_targets(const std::vector<Target>& targets, const std::string& with) {
  if (targets.empty()) return;
  fmt::print("\n{:<4}  {:>8} {:>8} {:>13}  {}\n", "", "at most", "measured", with, "target");
  for (const Target& target : targets) {
    const std::string with_rest =
        target.with_rest > 0 ? fmt::format("{:.3f}", target.with_rest) : "";
    fmt::print("{:<4}  {:>8} {:>8.3f} {:>13}  {}\n", target.pass() ? "pass" : "MISS", target.limit,
               target.measured, with_rest, target.what);
  }
}

nlohmann::ordered_json to_json(const std::vector<Target>& targets, const std::string& with) {
  std::string key = with;
  std::replace(key.begin(), key.end(), ' ', '_');
  auto array = nlohmann::ordered_json::array();
  for (const Target& target : targets) {
    array.push_back({{"target", target.what},
                     {"at_most", target.limit},
                     {"measured", target.measured},
                     {key, target.with_rest},
                     {"pass", target.pass()}});
  }
  return array;
}

void write_file(const std::string& path, const nlohmann::ordered_json& document) {
  const auto directory = std::filesystem::path(path).parent_path();
  if (!directory.empty()) std::filesystem::create_directories(directory);
  std::ofstream file(path);
  file << document.dump(1) << '\n';
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace pawl::bench
