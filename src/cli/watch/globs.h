// Which files the person asks about: the same globs as `pawl run --atomic`.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pawl::cli::watch {

class Globs {
 public:
  // A glob with '/' is matched against the absolute real path (a relative one counts from here),
  // one without against the file's name.
  explicit Globs(const std::vector<std::string>& globs);

  // All files when there are no globs.  Pawl's own side files never match.
  bool match(const std::string& real_path) const;
  // The globs that match none of these paths.
  std::vector<std::string> without_match(const std::vector<std::string>& real_paths) const;

 private:
  std::vector<std::string> globs_;
};

// Globs that match these paths and few others: what is special to a glob or to the list of globs
// becomes '?'. Where `kPatternNamesMin` paths or more differ in numbers only, one with '*' in their
// place matches them all, unless it would match one of `others`, too.
inline constexpr std::size_t kPatternNamesMin = 2;
// Of mkstemp(3) and mkdtemp(3), at the end of their names.
inline constexpr std::size_t kRandomLetters = 6;
// What is another one in each run becomes '*': the number of a process, a date and the time behind
// it, a number that begins with 0, a digest or UUID, and the end of a name that is made up
// (is_made_up()).
struct Changing {
  const std::set<std::string>& process_numbers;
  const std::set<std::string>& random_names;
  const std::map<std::string, std::size_t>& random_directories;  // and how much of their ends is
  const std::set<std::string>& dates;                            // as names have them
};
// True where a name that the program made anew ends like one that is made up: with six hexadecimal
// digits or more, as LLVM's temporary files do.
bool is_made_up(const std::string& name);
// How many letters are made up at the end of the name of a directory that the program made: as
// Python's tempfile names one; mkdtemp(3) makes it from within libc.
std::size_t random_letters_at_end(const std::string& name, bool is_inside_libc);
// None of the globs is matched by another one, and none takes one that is refused.
std::vector<std::string> globs_for(const std::vector<std::string>& paths,
                                   const std::vector<std::string>& others,
                                   const std::vector<std::string>& refused,
                                   const Changing& changing);

// The path with '*' for each number in the file's name: what numbered files have in common.  A word
// of hexadecimal digits is a number where the first of them is a decimal one.
std::string without_numbers(const std::string& path);

}  // namespace pawl::cli::watch
