#include "preload/patterns.h"

#include <fnmatch.h>
#include <unistd.h>
#include <climits>

#include <string_view>
#include <vector>

#include "medium/block_medium.h"
#include "medium/environment.h"
#include "preload/messages.h"

namespace pawl::preload {
namespace {

constexpr std::size_t kPatternsMax = 256;

std::vector<std::string>& patterns() {
  static std::vector<std::string>& instance = *new std::vector<std::string>;
  return instance;
}

std::string starting_directory() {
  char buffer[PATH_MAX];
  return getcwd(buffer, sizeof(buffer)) != nullptr ? buffer : "";
}

}  // namespace

void read_patterns() {
  const char* const variable = environment_variable("PAWL_ATOMIC");
  if (variable == nullptr) return;
  std::string_view rest = variable;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    std::string pattern(rest.substr(0, colon));
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
    if (pattern.empty()) continue;
    if (patterns().size() == kPatternsMax) {
      say("PAWL_ATOMIC", "holds more than 256 globs; the rest is ignored. Use fewer, wider ones");
      return;
    }
    if (pattern.find('/') != std::string::npos && pattern.front() != '/') {
      while (pattern.starts_with("./")) pattern.erase(0, 2);
      pattern = starting_directory() + "/" + pattern;
    }
    patterns().push_back(std::move(pattern));
  }
}

bool has_patterns() { return !patterns().empty(); }

bool is_side_file(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  return name.ends_with(kJournalSuffix) || name.starts_with(kProvisionalPrefix);
}

bool matches_a_pattern(const std::string& real_path) {
  if (real_path.empty() || is_side_file(real_path)) return false;
  const std::string name = real_path.substr(real_path.rfind('/') + 1);
  for (const std::string& pattern : patterns()) {
    const bool whole_path = pattern.find('/') != std::string::npos;
    const std::string& subject = whole_path ? real_path : name;
    if (fnmatch(pattern.c_str(), subject.c_str(), FNM_PATHNAME) == 0) return true;
  }
  return false;
}

}  // namespace pawl::preload
