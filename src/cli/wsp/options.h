// What the process form and the machine form of `pawl wsp` ask for and tell in the same words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/text.h"
#include "wsp/budget/save_budget.h"
#include "wsp/power/power_sources.h"

namespace pawl::cli {

inline constexpr double kWindowMsDefault = 50;
// For what a supervisor is asked to do.
inline constexpr int kSaveAnswerMsMax = 60'000;
inline constexpr int kRehearsalAnswerMsMax = 3'600'000;

struct WspOptions {
  std::string serial_line;
  double window_ms = kWindowMsDefault;
};

// Takes numbers, and says of anything else what is wrong with it.
CLI::Validator number_from_to(double least, double most);

// --serial-line, --window-ms.
void add_wsp_options(CLI::App& verb, WspOptions& options);
// --window-ms alone, for verbs that judge and do not watch.
void add_window_option(CLI::App& verb, double& window_ms);

void print_budget(const wsp::BudgetFindings& found);
Json as_json(const wsp::BudgetFindings& found);

}  // namespace pawl::cli
