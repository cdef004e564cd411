#include "medium/memory_areas.h"

#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>

namespace pawl {
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

}  // namespace

// START-END rwxp OFFSET MAJOR:MINOR INODE, blanks, and the name.
std::optional<MemoryArea> parse_memory_area(std::string_view line) {
  MemoryArea area;
  if (!take_number(line, area.start, 16) || !take_letter(line, '-') ||
      !take_number(line, area.end, 16) || !take_letter(line, ' ') ||
      line.size() < kProtectionLetters)
    return std::nullopt;
  area.protection = (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) |
                    (line[2] == 'x' ? PROT_EXEC : 0);
  area.is_shared = line[3] == 's';
  line.remove_prefix(kProtectionLetters);
  unsigned device_major = 0;
  unsigned device_minor = 0;
  if (!take_letter(line, ' ') || !take_number(line, area.offset, 16) || !take_letter(line, ' ') ||
      !take_number(line, device_major, 16) || !take_letter(line, ':') ||
      !take_number(line, device_minor, 16) || !take_letter(line, ' ') ||
      !take_number(line, area.inode, 10))
    return std::nullopt;
  area.device = makedev(device_major, device_minor);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  area.name = line;
  if (area.start >= area.end) return std::nullopt;
  return area;
}

bool visit_memory_areas(const std::string& path,
                        const std::function<bool(const MemoryArea&)>& visit) {
  std::ifstream file(path);
  if (!file) return false;
  for (std::string line; std::getline(file, line);) {
    const auto area = parse_memory_area(line);
    if (area.has_value() && !visit(*area)) break;
  }
  return true;
}

}  // namespace pawl
