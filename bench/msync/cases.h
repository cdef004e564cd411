// What is measured: the sweep over pages, and one dirty page in a large mapping.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "msync/statistics.h"

namespace pawl::bench {

struct Plan {
  std::string directory;  // for files, on the file system to be measured
  std::uint64_t file_bytes = std::uint64_t{256} << 20;
  std::vector<std::uint32_t> pages = {1, 4, 16, 64, 256, 1024};
  std::vector<std::uint32_t> bytes_per_page = {kLineBytes, kPageBytes};
  std::vector<std::string> systems;  // of the sweep; empty: all
  std::vector<std::string> loads = {kSaturated, kThink};
  double shape_seconds = 14;        // for each of pages x bytes x loads, shared by all systems
  std::uint32_t turn_us = 100'000;  // of one system, saturated; half as long again with think time
  std::uint64_t large_bytes = std::uint64_t{8} << 30;
  std::uint64_t small_bytes = std::uint64_t{64} << 20;
  double large_seconds = 20;  // for each of sparse and full
  std::uint32_t think_us = 5000;
};

struct Results {
  Rows rows;
  std::map<std::string, std::string> skipped;  // a system or a case, and why
  std::uint64_t large_bytes = 0;               // what memory and disk had room for
};

// Each throws std::runtime_error when a system fails, or when SIGINT or SIGTERM came.
void measure_pages(const Plan& plan, Results& results);
void measure_large(const Plan& plan, Results& results);

}  // namespace pawl::bench
