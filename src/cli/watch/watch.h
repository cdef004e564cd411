// Watches a program and answers: what `pawl doctor -- COMMAND` does.
#pragma once

#include <string>
#include <vector>

namespace pawl::cli::watch {

struct Request {
  std::vector<std::string> command;
  std::vector<std::string> globs;
  bool json = false;
};

// Prints the answer, and returns an exit code of exit_codes.h.
int watch(const Request& request);

}  // namespace pawl::cli::watch
