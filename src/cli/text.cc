#include "cli/text.h"

#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <ctime>

namespace pawl::cli {

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 64 * 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    unit += 1;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string count_text(std::uint64_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string time_text(std::uint64_t time_ns) {
  if (time_ns == 0) return "-";
  const auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "-";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     time_ns % 1'000'000'000 / 1000);
}

std::string shell_word(const std::string& text) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:=@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}

std::string printable(const std::string& text) {
  std::string shown;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '\n') {
      shown += "\\n";
    } else if (code < ' ' || code == 0x7f) {
      shown += fmt::format("\\x{:02x}", code);
    } else {
      shown += letter;
    }
  }
  return shown;
}

void complain(const char* verb, const std::string& message) {
  fmt::print(stderr, "pawl {}: {}\n", verb, printable(message));
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void print_json(const Json& json) { fmt::print("{}\n", json_text(json, 2)); }

}  // namespace pawl::cli
