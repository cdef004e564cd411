#include "cli/wsp/options.h"

#include <fmt/core.h>

#include <cstdlib>

namespace pawl::cli {

namespace {

constexpr double kWindowMsMin = 0.001;
constexpr double kWindowMsMax = 3'600'000;  // an hour: a battery, not a power supply's capacitors

std::string milliseconds_text(double us) { return fmt::format("{:.2f} ms", us / 1000); }

}  // namespace

CLI::Validator number_from_to(double least, double most) {
  return {[least, most](std::string& text) {
            char* end = nullptr;
            const double number = std::strtod(text.c_str(), &end);
            if (end == text.c_str() || *end != 0) return fmt::format("{} is not a number", text);
            if (number >= least && number <= most) return std::string();
            return fmt::format("{} is not from {} to {}", text, least, most);
          },
          fmt::format("{} to {}", least, most)};
}

void add_window_option(CLI::App& verb, double& window_ms) {
  verb.add_option("--window-ms", window_ms,
                  "How long the power lasts after its failure is heard of, in milliseconds")
      ->check(number_from_to(kWindowMsMin, kWindowMsMax))
      ->capture_default_str()
      ->type_name("MS");
}

void add_wsp_options(CLI::App& verb, WspOptions& options) {
  verb.add_option("--serial-line", options.serial_line,
                  "A terminal device whose byte 'F' says that the power fails (115200 baud, 8N1)")
      ->type_name("DEVICE");
  add_window_option(verb, options.window_ms);
}

void print_budget(const wsp::BudgetFindings& found) {
  if (found.rehearsals == 0) {
    fmt::print("budget       unknown: nothing was rehearsed yet\n");
    return;
  }
  fmt::print("budget       {}: 99.9 % of saves take {} or less, of a window of {}\n",
             found.holds ? "holds" : "DOES NOT HOLD", milliseconds_text(found.percentile_999_us),
             milliseconds_text(found.window_us));
  fmt::print("save         median {}, longest {}, of {}{}\n", milliseconds_text(found.median_us),
             milliseconds_text(found.longest_us), count_text(found.rehearsals, "rehearsal"),
             found.rehearsals < 1000 ? " (under 1,000: the longest stands for the 99.9 %)" : "");
  fmt::print("slowest in   {} ({:.0f} % of the slowest saves)\n", found.dominating_step,
             found.dominating_share * 100);
}

Json as_json(const wsp::BudgetFindings& found) {
  return {{"holds", found.holds},
          {"rehearsals", found.rehearsals},
          {"window_us", found.window_us},
          {"median_us", found.median_us},
          {"percentile_999_us", found.percentile_999_us},
          {"longest_us", found.longest_us},
          {"dominating_step", found.dominating_step},
          {"dominating_share", found.dominating_share}};
}

}  // namespace pawl::cli
