// The program that is killed: threads that make random calls on a mapped file.
#pragma once

#include <cstdint>
#include <string>

namespace pawl::test::calls {

struct Settings {
  std::string path;
  bool by_library = true;  // pawl_mmap(); else plain calls, under `pawl run`
  std::uint32_t seed = 0;
  int shared_descriptor = -1;  // of a Shared
};

// Until it is killed, or for some seconds.  Returns the status to exit with; aborts when memory is
// not what was stored, or a call was acknowledged or refused that must not be.
int run_program(const Settings& settings);

}  // namespace pawl::test::calls
