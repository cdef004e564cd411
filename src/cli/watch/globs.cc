#include "cli/watch/globs.h"

#include <fnmatch.h>

#include <filesystem>

#include "medium/block_medium.h"

namespace pawl::cli::watch {

Globs::Globs(const std::vector<std::string>& globs) {
  for (std::string glob : globs) {
    if (glob.find('/') != std::string::npos && glob.front() != '/') {
      while (glob.starts_with("./")) glob.erase(0, 2);
      glob = std::filesystem::current_path().string() + "/" + glob;
    }
    globs_.push_back(std::move(glob));
  }
}

bool Globs::match(const std::string& real_path) const {
  const std::string name = real_path.substr(real_path.rfind('/') + 1);
  if (name.ends_with(kJournalSuffix) || name.starts_with(kProvisionalPrefix)) return false;
  if (globs_.empty()) return true;
  for (const std::string& glob : globs_) {
    const std::string& subject = glob.find('/') != std::string::npos ? real_path : name;
    if (::fnmatch(glob.c_str(), subject.c_str(), FNM_PATHNAME) == 0) return true;
  }
  return false;
}

std::string glob_for(const std::string& path) {
  std::string glob = path;
  for (char& letter : glob) {
    if (std::string("*?[]\\:").find(letter) != std::string::npos) letter = '?';
  }
  return glob;
}

}  // namespace pawl::cli::watch
