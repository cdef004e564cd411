#include "text.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace kv {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Matches c with the class whose text begins at `at`, behind its bracket, and moves `at` behind it.
// A class that does not end ends with the pattern.
bool class_matches(std::string_view pattern, size_t& at, char c) {
  const auto value = static_cast<unsigned char>(c);
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  while (at < pattern.size() && pattern[at] != ']') {
    const size_t left = pattern.size() - at;
    if (pattern[at] == '\\' && left >= 2) {
      found |= pattern[at + 1] == c;
      at += 2;
    } else if (left >= 3 && pattern[at + 1] == '-') {
      const auto one_end = static_cast<unsigned char>(pattern[at]);
      const auto other_end = static_cast<unsigned char>(pattern[at + 2]);
      found |= value >= std::min(one_end, other_end) && value <= std::max(one_end, other_end);
      at += 3;
    } else {
      found |= pattern[at++] == c;
    }
  }
  if (at < pattern.size()) ++at;
  return found != negated;
}

// Matches c with the single-character element at `at`, which is no star, and moves `at` behind it.
bool element_matches(std::string_view pattern, size_t& at, char c) {
  const char element = pattern[at++];
  if (element == '?') return true;
  if (element == '[') return class_matches(pattern, at, c);
  if (element == '\\' && at < pattern.size()) return pattern[at++] == c;
  return element == c;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.starts_with('0') && text.size() > 1) return std::nullopt;
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> parse_double(std::string_view text) {
  const std::string terminated(text);
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(terminated.c_str(), &end);
  const bool whole = end == terminated.c_str() + terminated.size();
  const bool beyond = errno == ERANGE && (std::isinf(number) || number == 0);
  if (!whole || beyond || std::isnan(number)) return std::nullopt;
  return number;
}

std::string format_double(double number) {
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[40];
  const int length = std::snprintf(buffer, sizeof buffer, "%.17g", number);
  return {buffer, static_cast<size_t>(length)};
}

bool matches(std::string_view pattern, std::string_view text) {
  size_t at = 0;
  size_t position = 0;
  // Where to go on if all else fails: behind the last star, with one more character taken by it.
  size_t behind_star = std::string_view::npos;
  size_t taken_by_star = 0;
  while (position < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      behind_star = ++at;
      taken_by_star = position;
    } else if (at < pattern.size() && element_matches(pattern, at, text[position])) {
      ++position;
    } else if (behind_star != std::string_view::npos) {
      at = behind_star;
      position = ++taken_by_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace kv
