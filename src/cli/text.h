// How the command writes numbers, times, failures and JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "medium/status.h"

namespace pawl::cli {

using Json = nlohmann::ordered_json;

// "4096 bytes", "16.0 MiB".
std::string size_text(std::uint64_t bytes);
// "1 record", "2 records".
std::string count_text(std::uint64_t count, const char* thing);
// UTC, "2026-01-31T23:59:59.123456Z"; "-" for 0.
std::string time_text(std::uint64_t time_ns);
// As one word for a shell: in quotes where it needs them.
std::string shell_word(const std::string& text);
// A name may hold a newline, or what moves the cursor: written as \n or \x1b.
std::string printable(const std::string& text);
// "message" on stderr, with the verb before it.
void complain(const char* verb, const std::string& message);
// The table of exit_codes.h, for --help.
std::string exit_codes_text();
// On stdout, indented; names that are not UTF-8 are made so.
void print_json(const Json& json);
// The name of a code, null for none.
Json error_json(pawl_error code);
std::string json_text(const Json& json, int indent);

}  // namespace pawl::cli
