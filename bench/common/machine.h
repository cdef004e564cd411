// Where figures come from: without it they mean nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pawl::bench {

// Name and value, in the order to print them.
using Facts = std::vector<std::pair<std::string, std::string>>;

// About this machine, and the disk and file system that hold `directory`.
Facts describe_machine(const std::string& directory);

// Processes that ran or waited to run, on average over the last minute.
double load_average();

}  // namespace pawl::bench
