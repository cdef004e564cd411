// A command that has not let a program go yet is ended by SIGTERM and its kin as any other, though
// they will be the program's later.
#pragma once

#include <csignal>

namespace pawl::wsp {

class EndingSignals {
 public:
  // From now on they end this process.
  EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;
  ~EndingSignals() { wait_again(); }

  // As before: blocked ones wait for whoever hears them.
  void wait_again() const;

 private:
  sigset_t before_{};
};

}  // namespace pawl::wsp
