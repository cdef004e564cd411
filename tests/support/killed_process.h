// A process that works until it is killed, and tells meanwhile how far it came.  It is the
// test's own program with other arguments: its main() looks at them before it starts any test.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <climits>
#include <cstddef>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "medium/descriptor.h"

namespace pawl::test {

// What is told at a time.  A pipe takes it whole or not at all, so no kill leaves half of one.
template <class T>
concept Word = std::is_trivially_copyable_v<T> && sizeof(T) <= PIPE_BUF;

// In the process: writes to standard output.  Ends the process, with 1, when that fails.
void tell_bytes(const void* bytes, std::size_t count);
void tell(const Word auto& word) { tell_bytes(&word, sizeof word); }

// The process as the test sees it.
class KilledProcess {
 public:
  // Starts it.  Throws std::runtime_error when that fails.
  explicit KilledProcess(const std::vector<std::string>& arguments);
  KilledProcess(const KilledProcess&) = delete;
  KilledProcess& operator=(const KilledProcess&) = delete;
  ~KilledProcess();  // kills it if nobody did

  // Waits for a word.  False: the process has ended, and all that it told is heard.
  bool hear_bytes(void* bytes, std::size_t count);
  bool has_ended() const;
  // It is a failure of the test if the process has ended by itself.
  void kill();

 private:
  pid_t process_ = 0;
  Descriptor told_;
};

// Starts the process with these arguments, kills it so long after its first `words` words, and
// returns all that it told.
template <Word T>
std::vector<T> run_and_kill(const std::vector<std::string>& arguments, std::size_t words,
                            std::chrono::microseconds later) {
  KilledProcess process(arguments);
  std::vector<T> told;
  const auto hear = [&] {
    T word;
    if (!process.hear_bytes(&word, sizeof word)) return false;
    told.push_back(word);
    return true;
  };
  while (told.size() < words && hear()) {
  }
  std::this_thread::sleep_for(later);
  process.kill();
  while (hear()) {
  }
  return told;
}

}  // namespace pawl::test
