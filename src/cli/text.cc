#include "cli/text.h"

#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "cli/exit_codes.h"

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

std::string exit_codes_text() {
  std::string text = "Exit codes:\n";
#define PAWL_EXIT_CODE(name, number, meaning) text += fmt::format("  {:>3}  {}\n", number, meaning);
  PAWL_EXIT_CODES(PAWL_EXIT_CODE)
#undef PAWL_EXIT_CODE
  return text;
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
  // In UTF-8 the control characters from U+0080 to U+009F begin with that: U+009B is as good as
  // ESC [ to many terminals.
  constexpr unsigned kLead = 0xc2;
  constexpr unsigned kControlsEnd = 0xa0;
  const auto code_at = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  std::string shown;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const unsigned code = code_at(at);
    const unsigned next = code_at(at + 1);
    if (code == '\n') {
      shown += "\\n";
    } else if (code < ' ' || code == 0x7f) {
      shown += fmt::format("\\x{:02x}", code);
    } else if (code == kLead && next >= 0x80 && next < kControlsEnd) {
      shown += fmt::format("\\x{:02x}\\x{:02x}", code, next);
      ++at;
    } else {
      shown += text[at];
    }
  }
  return shown;
}

void complain(const char* verb, const std::string& message) {
  // A message that nobody takes is not to change what the command answers.
  std::fputs(fmt::format("pawl {}: {}\n", verb, printable(message)).c_str(), stderr);
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void print_json(const Json& json) { fmt::print("{}\n", json_text(json, 2)); }

}  // namespace pawl::cli
