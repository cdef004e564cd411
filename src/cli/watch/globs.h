// Which files the person asks about: the same globs as `pawl run --atomic`.
#pragma once

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

 private:
  std::vector<std::string> globs_;
};

// A glob that matches this path and few others: what is special to a glob or to the list of globs
// becomes '?'.
std::string glob_for(const std::string& path);

}  // namespace pawl::cli::watch
