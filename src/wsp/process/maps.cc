#include "wsp/process/maps.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

// Takes a number off the text's beginning; false when there is none.
template <class Number>
bool take_number(std::string_view& text, Number& into, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

bool take_letter(std::string_view& text, char letter) {
  if (!text.starts_with(letter)) return false;
  text.remove_prefix(1);
  return true;
}

constexpr std::size_t kProtectionLetters = 4;  // "rwxp"

// START-END rwxp OFFSET MAJOR:MINOR INODE, blanks, and the name.
bool parse_line(std::string_view text, MapsLine& into) {
  if (!take_number(text, into.start, 16) || !take_letter(text, '-') ||
      !take_number(text, into.end, 16) || !take_letter(text, ' ') ||
      text.size() < kProtectionLetters)
    return false;
  into.protection = (text[0] == 'r' ? PROT_READ : 0) | (text[1] == 'w' ? PROT_WRITE : 0) |
                    (text[2] == 'x' ? PROT_EXEC : 0);
  into.is_shared = text[3] == 's';
  text.remove_prefix(kProtectionLetters);
  if (!take_letter(text, ' ') || !take_number(text, into.offset, 16) || !take_letter(text, ' ') ||
      !take_number(text, into.device_major, 16) || !take_letter(text, ':') ||
      !take_number(text, into.device_minor, 16) || !take_letter(text, ' ') ||
      !take_number(text, into.inode, 10))
    return false;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  into.name = text;
  return into.start < into.end;
}

}  // namespace

std::vector<MapsLine> parse_maps(std::string_view text) {
  std::vector<MapsLine> lines;
  while (!text.empty() && lines.size() < kMappingsMax) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    MapsLine line;
    if (!parse_line(text.substr(0, end), line)) return {};
    lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<MapsLine> read_maps(pid_t process) { return parse_maps(read_proc(process, "maps")); }

}  // namespace pawl::wsp
