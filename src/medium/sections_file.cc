#include "medium/sections_file.h"

#include <unistd.h>
#include <cerrno>

namespace pawl {

bool has_sections(int file) {
  std::array<char, kSectionsMagic.size()> found{};
  return ::pread(file, found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()) &&
         (found == kSectionsMagic || found == kUnfinishedSectionsMagic);
}

Status check_has_no_sections(int file, const std::string& path) {
  if (!has_sections(file)) return {};
  return Status::failure(EINVAL, PAWL_ERROR_WRONG_KIND_OF_FILE,
                         path +
                             " is a file of failure-atomic sections, which keeps itself "
                             "whole and has no journal; open it with pawl_fase_open(), or "
                             "look at it with 'pawl fase info'");
}

}  // namespace pawl
