// The verbs of the command, one file each.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace pawl::cli {

// Each adds its verb to the command line.  When the verb is asked for, it runs while the line is
// parsed and leaves its exit code.
// `after_dashes` is what stood behind "--", if that was there: none of it is an option of ours.
using AfterDashes = std::optional<std::vector<std::string>>;
void add_run(CLI::App& app, int& exit_code, const AfterDashes& after_dashes);
void add_info(CLI::App& app, int& exit_code);
void add_recover(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_log(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code, const AfterDashes& after_dashes);
void add_snapshot(CLI::App& app, int& exit_code);
void add_heap(CLI::App& app, int& exit_code);
void add_fase(CLI::App& app, int& exit_code);
#ifdef PAWL_HAS_WSP
void add_wsp(CLI::App& app, int& exit_code, const AfterDashes& after_dashes);
#endif
void add_bench(CLI::App& app, int& exit_code);

}  // namespace pawl::cli
