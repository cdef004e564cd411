// bench_server_facts DIRECTORY: prints as JSON where figures come from, for the benchmark of
// servers, which is no C++ program.
#include <fmt/core.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/machine.h"

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: bench_server_facts DIRECTORY\n");
    return EXIT_FAILURE;
  }
  nlohmann::ordered_json facts;
  for (const auto& [name, value] : pawl::bench::describe_machine(arguments[1])) facts[name] = value;
  facts["load_before"] = fmt::format("{:.2f}", pawl::bench::load_average());
  fmt::print("{}\n", facts.dump());
}
