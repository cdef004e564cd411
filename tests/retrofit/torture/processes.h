// Programs under test: started, listened to, killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace pawl::retrofit {

using Command = std::vector<std::string>;

struct Child {
  pid_t process;
  int output;
};

Child start(const Command& command);

// The rest of what a child writes; closes the descriptor.
std::string read_all(int descriptor);

struct Outcome {
  int status;  // as waitpid() says it
  std::string output;
};

// Waits for its end.
Outcome run(const Command& command);

}  // namespace pawl::retrofit
