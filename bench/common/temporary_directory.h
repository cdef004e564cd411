// Where a benchmark keeps its files while it runs.
#pragma once

#include <string>

namespace pawl::bench {

// A directory PARENT/PREFIX-XXXXXX that is removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory(const std::string& parent, const std::string& prefix);
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pawl::bench
