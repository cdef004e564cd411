// Numbers and patterns, read and written as Redis does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kv {

bool equal_ignoring_case(std::string_view a, std::string_view b);
std::string to_lower(std::string_view text);

// An integer in its only spelling: no plus sign, no leading zeros or spaces.
std::optional<int64_t> parse_integer(std::string_view text);

// What strtod() takes, all of it, and no NaN.
std::optional<double> parse_double(std::string_view text);
std::string format_double(double number);

// Whether text matches a pattern of *, ?, [a-z], [^a-z] and \x.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace kv
