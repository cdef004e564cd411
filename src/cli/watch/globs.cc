#include "cli/watch/globs.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>

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

namespace {

std::string glob_for(const std::string& path) {
  std::string glob = path;
  for (char& letter : glob) {
    if (std::string("*?[]\\:").find(letter) != std::string::npos) letter = '?';
  }
  return glob;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

}  // namespace

std::string without_numbers(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;
  std::string pattern = path.substr(0, name);
  for (const char letter : path.substr(name)) {
    if (!is_digit(letter)) {
      pattern += letter;
    } else if (!pattern.ends_with('*')) {
      pattern += '*';
    }
  }
  return pattern;
}

std::vector<std::string> globs_for(const std::vector<std::string>& paths,
                                   const std::vector<std::string>& others) {
  // By the pattern of their globs, which have no '*' of their own.
  std::map<std::string, std::size_t> alike;
  for (const std::string& path : paths) alike[without_numbers(glob_for(path))] += 1;
  std::vector<std::string> globs;
  for (const std::string& path : paths) {
    std::string glob = glob_for(path);
    const std::string pattern = without_numbers(glob);
    const bool is_too_wide = std::ranges::any_of(others, [&](const std::string& other) {
      return ::fnmatch(pattern.c_str(), other.c_str(), FNM_PATHNAME) == 0;
    });
    if (alike[pattern] >= kPatternNamesMin && !is_too_wide) glob = pattern;
    if (std::ranges::find(globs, glob) == globs.end()) globs.push_back(std::move(glob));
  }
  return globs;
}

}  // namespace pawl::cli::watch
