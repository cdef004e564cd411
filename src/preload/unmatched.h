// Files that a program maps and no glob matches: a glob with a typing error, or one for the numbers
// and dates of yesterday's names, protects nothing, and that would show after the crash.
#pragma once

#include <cstddef>
#include <string>

namespace pawl::preload {

inline constexpr std::size_t kUnmatchedNamesMax = 4;  // that are said
inline constexpr std::size_t kUnmatchedFilesMax = 16;
inline constexpr std::size_t kMatchedShapesMax = 64;  // of names, which differ in numbers only

// Of a shared mapping that may be written, of a file with a name.  A file that differs in numbers
// only from one that a glob matches, in the same directory, is said as soon as both are mapped: a
// server may never end.
void note_unmatched(const std::string& real_path);
void note_matched(const std::string& real_path);
// At the end, once: the first file that was not matched, where none was, nor in a child.
void say_nothing_was_matched();

}  // namespace pawl::preload
