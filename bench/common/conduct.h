// What the conductor of a benchmark does beside measuring: ends when it is asked to, says how far
// it is, and what went wrong.
#pragma once

#include <functional>
#include <string>

namespace pawl::bench {

// SIGINT and SIGTERM end the measurement after the turn in hand.
void stop_on_signals();
// Throws std::runtime_error("stopped") once a signal came.
void stop_if_asked();

// Shows a line on a terminal in place of the last one; elsewhere nothing.
void progress(const std::string& text);

// The exit status of a program that does no more than this.  The text of an exception goes to
// stderr.
int run_benchmark(const std::function<void()>& benchmark);

}  // namespace pawl::bench
