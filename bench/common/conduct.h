// What the conductor of a benchmark does between turns: ends when it is asked to, and says how far
// it is.
#pragma once

#include <string>

namespace pawl::bench {

// SIGINT and SIGTERM end the measurement after the turn in hand.
void stop_on_signals();
// Throws std::runtime_error("stopped") once a signal came.
void stop_if_asked();

// Shows a line on a terminal in place of the last one; elsewhere nothing.
void progress(const std::string& text);

}  // namespace pawl::bench
