// How a file of failure-atomic sections (docs/fase-format.md) is told from others.  It keeps itself
// whole, in place: no mapping with a journal may have it, nor anything that replays one.
#pragma once

#include <array>
#include <string>

#include "medium/status.h"

namespace pawl {

inline constexpr std::array<char, 8> kSectionsMagic{'P', 'A', 'W', 'L', 'F', 'A', 'S', 'E'};
// Stands in its place until the file is made; and before the file is mapped for the first time.
inline constexpr std::array<char, 8> kUnfinishedSectionsMagic{'P', 'A', 'W', 'L',
                                                              'F', 'N', 'E', 'W'};

// Of a file open for reading.
bool has_sections(int file);
// The lock on the whole of such a file: who opens it has F_WRLCK, who copies it F_RDLCK.  As
// fcntl(2) answers.
int set_sections_lock(int file, short type);
// EINVAL where it is one.
Status check_has_no_sections(int file, const std::string& path);

}  // namespace pawl
