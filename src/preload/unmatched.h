// Files that a program maps and no glob matches: a glob with a typing error, or one for the numbers
// and dates of yesterday's names, protects nothing, and that would show after the crash.
#pragma once

#include <cstddef>
#include <string>

namespace pawl::preload {

inline constexpr std::size_t kUnmatchedNamesMax = 4;  // in the line
inline constexpr std::size_t kUnmatchedFilesMax = 16;
inline constexpr std::size_t kMatchedShapesMax = 64;  // of names, which differ in numbers only

// Of a shared mapping that may be written, of a file with a name.
void note_unmatched(const std::string& real_path);
void note_matched(const std::string& real_path);
// One line, once: where nothing was matched, the first file that was not; else those that differ in
// numbers only from a file that was, in the same directory.
void say_what_was_unmatched();

}  // namespace pawl::preload
