#include "common/conduct.h"

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace pawl::bench {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

void on_signal(int) { stop_asked = 1; }

}  // namespace

void stop_on_signals() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

void stop_if_asked() {
  if (stop_asked != 0) throw std::runtime_error("stopped");
}

void progress(const std::string& text) {
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\x1b[K{}", text);
}

int run_benchmark(const std::function<void()>& benchmark) {
  try {
    benchmark();
  } catch (const std::exception& exception) {
    fmt::print(stderr, "bench: {}\n", exception.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace pawl::bench
