// What the reports of benchmarks share: what Pawl is to reach, and whether it did; the file for
// scripts.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace pawl::bench {

struct Target {
  std::string what;
  double limit = 0;
  double measured = 0;
  // The same with a cost counted in that lies outside of the measured call, which the benchmark
  // names; 0 where that has no meaning.
  double with_rest = 0;
  bool pass() const { return measured <= limit; }
};

// `with` names that cost: "with stores", in JSON "with_stores".
void print_targets(const std::vector<Target>& targets, const std::string& with);
nlohmann::ordered_json to_json(const std::vector<Target>& targets, const std::string& with);

// Makes the file's directory, too.  Throws std::runtime_error when the file cannot be written.
void write_file(const std::string& path, const nlohmann::ordered_json& document);

}  // namespace pawl::bench
