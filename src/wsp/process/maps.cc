#include "wsp/process/maps.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

MapsLine parse_line(char* line, char* end) {
  MapsLine parsed;
  char* at = line;
  parsed.start = std::strtoull(at, &at, 16);
  parsed.end = std::strtoull(at + 1, &at, 16);
  parsed.protection = (at[1] == 'r' ? PROT_READ : 0) | (at[2] == 'w' ? PROT_WRITE : 0) |
                      (at[3] == 'x' ? PROT_EXEC : 0);
  parsed.is_shared = at[4] == 's';
  parsed.offset = std::strtoull(at + 5, &at, 16);
  parsed.device_major = static_cast<unsigned>(std::strtoul(at, &at, 16));
  parsed.device_minor = static_cast<unsigned>(std::strtoul(at + 1, &at, 16));
  parsed.inode = std::strtoull(at, &at, 10);
  while (at < end && *at == ' ') ++at;
  parsed.name.assign(at, end);
  return parsed;
}

}  // namespace

std::vector<MapsLine> read_maps(pid_t process) {
  std::string text = read_proc(process, "maps");
  std::vector<MapsLine> lines;
  std::size_t from = 0;
  while (from < text.size() && lines.size() < kMappingsMax) {
    std::size_t to = text.find('\n', from);
    if (to == std::string::npos) to = text.size();
    lines.push_back(parse_line(text.data() + from, text.data() + to));
    from = to + 1;
  }
  return lines;
}

}  // namespace pawl::wsp
