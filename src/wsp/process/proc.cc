#include "wsp/process/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

#include "medium/descriptor.h"

namespace pawl::wsp {

namespace {

constexpr std::size_t kProcBytesMax = 64ULL << 20;

std::string proc_path(pid_t process, const std::string& name) {
  return "/proc/" + std::to_string(process) + "/" + name;
}

}  // namespace

std::string read_proc(pid_t process, const std::string& name, const std::function<bool()>& stops) {
  return read_proc_in(AT_FDCWD, proc_path(process, name), stops);
}

std::string read_proc_in(int directory, const std::string& name,
                         const std::function<bool()>& stops) {
  std::string text;
  const Descriptor file(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return text;
  std::array<char, 16384> piece;
  while (text.size() < kProcBytesMax && !(stops && stops())) {
    const ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::string read_proc_link(pid_t process, const std::string& name) {
  return read_proc_link_in(AT_FDCWD, proc_path(process, name));
}

std::string read_proc_link_in(int directory, const std::string& name) {
  std::array<char, PATH_MAX> target;
  const ssize_t count = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  return count < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(count));
}

std::string_view field_of(std::string_view text, std::string_view field) {
  std::size_t from = 0;
  while (from < text.size()) {
    std::size_t to = text.find('\n', from);
    if (to == std::string_view::npos) to = text.size();
    std::string_view line = text.substr(from, to - from);
    if (line.starts_with(field) && line.substr(field.size()).starts_with(':')) {
      line.remove_prefix(field.size() + 1);
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      return line;
    }
    from = to + 1;
  }
  return {};
}

std::uint64_t number_of(std::string_view text, int base) {
  return std::strtoull(std::string(text.substr(0, std::min<std::size_t>(text.size(), 64))).c_str(),
                       nullptr, base);
}

std::vector<std::uint64_t> numbers_of(std::string_view text, int base) {
  std::vector<std::uint64_t> numbers;
  const std::string copy(text);
  const char* at = copy.c_str();
  for (;;) {
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(at, &end, base);
    if (end == at) return numbers;
    numbers.push_back(number);
    at = end;
  }
}

bool read_limits(pid_t process, std::span<std::uint64_t[2]> into) {
  return parse_limits(read_proc(process, "limits"), into);
}

bool parse_limits(std::string_view text, std::span<std::uint64_t[2]> into) {
  // A name of 26 columns, and two of 21 each; the first line is a heading.
  constexpr std::size_t kNameColumns = 26;
  constexpr std::size_t kValueColumns = 21;
  std::size_t at = text.find('\n');
  for (auto& limit : into) {
    if (at == std::string_view::npos || text.size() - at < kNameColumns + 2 * kValueColumns)
      return false;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string_view value =
          text.substr(at + 1 + kNameColumns + i * kValueColumns, kValueColumns);
      limit[i] = value.starts_with("unlimited") ? RLIM_INFINITY : number_of(value);
    }
    at = text.find('\n', at + 1);
  }
  return true;
}

std::vector<std::uint64_t> parse_stat(std::string_view text) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || text.size() - name_end <= 3) return {};
  std::vector<std::uint64_t> fields{0};
  const std::vector<std::uint64_t> rest = numbers_of(text.substr(name_end + 3));
  fields.insert(fields.end(), rest.begin(), rest.end());
  return fields;
}

std::vector<std::uint64_t> stat_fields(pid_t process) {
  return parse_stat(read_proc(process, "stat"));
}

std::vector<int> numbers_in(const std::string& directory) {
  std::vector<int> numbers;
  DIR* const opened = ::opendir(directory.c_str());
  if (opened == nullptr) return numbers;
  while (const dirent* entry = ::readdir(opened)) {
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
      numbers.push_back(std::atoi(entry->d_name));
  }
  ::closedir(opened);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace pawl::wsp
