#include "medium/sections_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

namespace pawl {

bool has_sections(int file) {
  std::array<char, kSectionsMagic.size()> found{};
  return ::pread(file, found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()) &&
         (found == kSectionsMagic || found == kUnfinishedSectionsMagic);
}

int set_sections_lock(int file, short type) {
  struct flock whole = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  return ::fcntl(file, F_OFD_SETLK, &whole);
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
