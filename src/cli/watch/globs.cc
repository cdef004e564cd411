#include "cli/watch/globs.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>

#include "medium/block_medium.h"

namespace pawl::cli::watch {

namespace {

bool matches(const std::string& glob, const std::string& real_path) {
  const bool is_of_name = glob.find('/') == std::string::npos;
  const std::string subject = is_of_name ? real_path.substr(real_path.rfind('/') + 1) : real_path;
  return ::fnmatch(glob.c_str(), subject.c_str(), FNM_PATHNAME) == 0;
}

}  // namespace

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
  return globs_.empty() || std::ranges::any_of(globs_, [&](const std::string& glob) {
           return matches(glob, real_path);
         });
}

std::vector<std::string> Globs::without_match(const std::vector<std::string>& real_paths) const {
  std::vector<std::string> left = globs_;
  std::erase_if(left, [&](const std::string& glob) {
    return std::ranges::any_of(real_paths,
                               [&](const std::string& path) { return matches(glob, path); });
  });
  return left;
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
bool is_alphanumeric(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; }

constexpr const char* kDigits = "0123456789abcdef";

// Of one digit there are too many others.
constexpr std::size_t kProcessDigitsMin = 2;
// Of a number that is filled up with zeros.
constexpr std::size_t kCountingDigitsMin = 3;

std::size_t hexadecimal_digits_at_end(const std::string& name) {
  const std::size_t last_other = name.find_last_not_of(kDigits);
  const std::size_t start = last_other == std::string::npos ? 0 : last_other + 1;
  return name.find_first_of("0123456789", start) == std::string::npos ? 0 : name.size() - start;
}

// mkstemps(3) puts more behind the letters: then the name is left as it is.
std::string without_random_end(const std::string& glob) {
  if (is_made_up(glob)) return glob.substr(0, glob.size() - hexadecimal_digits_at_end(glob)) + "*";
  const std::size_t start = glob.size() - std::min(glob.size(), kRandomLetters);
  const bool is_random =
      std::all_of(glob.begin() + static_cast<std::ptrdiff_t>(start), glob.end(), is_alphanumeric);
  return is_random ? glob.substr(0, start) + "*" : glob;
}

// Behind a date: digits, and what stands before them. '?' was ':'.
std::size_t end_of_time(const std::string& glob, std::size_t at) {
  for (;;) {
    const bool is_parted =
        at < glob.size() && std::string_view("T_-?").find(glob[at]) != std::string_view::npos;
    const std::size_t digit = at + (is_parted ? 1 : 0);
    if (digit >= glob.size() || !is_digit(glob[digit])) return at;
    at = std::min(glob.size(), glob.find_first_not_of("0123456789", digit));
  }
}

std::string without_dates(std::string glob, const std::set<std::string>& dates) {
  for (const std::string& date : dates) {
    for (std::size_t at = glob.rfind('/') + 1; (at = glob.find(date, at)) != std::string::npos;)
      glob.replace(at, end_of_time(glob, at + date.size()) - at, "*");
  }
  return glob;
}

// How long a UUID is that the text begins with, or a digest: 32 hexadecimal digits or more; 0:
// there is none.
std::size_t digest_bytes(std::string_view text) {
  const auto digits_at = [&](std::size_t at) {
    return std::min(text.find_first_not_of("0123456789abcdefABCDEF", at), text.size()) - at;
  };
  constexpr std::size_t kGroups[] = {8, 4, 4, 4, 12};
  constexpr std::size_t kUuidBytes = 36;
  std::size_t at = 0;
  for (const std::size_t group : kGroups) {
    if (at > text.size() || digits_at(at) < group) break;
    at += group;
    if (at == kUuidBytes) return at;
    if (at == text.size() || text[at] != '-') break;
    at += 1;
  }
  constexpr std::size_t kDigestDigitsMin = 32;
  const std::size_t digits = digits_at(0);
  return digits >= kDigestDigitsMin ? digits : 0;
}

// In the file's name, whoever gave it: a UUID, and the digits of MD5, SHA-1 and longer ones.
std::string without_digests(const std::string& glob) {
  const std::size_t name = glob.rfind('/') + 1;
  std::string lasting = glob.substr(0, name);
  for (std::size_t at = name; at < glob.size();) {
    const std::size_t digest = digest_bytes(std::string_view(glob).substr(at));
    lasting += digest > 0 ? '*' : glob[at];
    at += std::max<std::size_t>(digest, 1);
  }
  return lasting;
}

bool takes_any(const std::string& glob, const std::vector<std::string>& paths) {
  return std::ranges::any_of(paths, [&](const std::string& path) { return matches(glob, path); });
}

// Without what no number of alike files is needed for.
std::string lasting_glob(const std::string& path, const Changing& changing) {
  std::string glob = without_digests(glob_for(path));
  // An inner directory comes behind its outer one.
  const auto& random = changing.random_directories;
  for (auto entry = random.rbegin(); entry != random.rend(); ++entry) {
    const auto& [directory, letters] = *entry;
    if (path.starts_with(directory + "/")) glob.replace(directory.size() - letters, letters, "*");
  }
  return glob;
}

// Those of processes, anywhere in the path, and those that count, in the file's name.
std::string without_changing_numbers(const std::string& glob,
                                     const std::set<std::string>& process_numbers) {
  const std::size_t name = glob.rfind('/') + 1;
  std::string changed;
  for (std::size_t at = 0; at < glob.size();) {
    std::size_t end = at;
    while (end < glob.size() && is_digit(glob[end])) ++end;
    const std::string number = glob.substr(at, end - at);
    const bool is_process = number.size() >= kProcessDigitsMin && process_numbers.contains(number);
    const bool counts = at >= name && number.size() >= kCountingDigitsMin && number.front() == '0';
    changed += is_process || counts ? std::string("*")
               : number.empty()     ? glob.substr(at, 1)
                                    : number;
    at = std::max(end, at + 1);
  }
  return changed;
}

// By one that has no '?', which would match the '*' of another as a letter.
bool is_covered(const std::string& glob, const std::vector<std::string>& globs) {
  return std::ranges::any_of(globs, [&](const std::string& other) {
    return other != glob && other.find('?') == std::string::npos &&
           ::fnmatch(other.c_str(), glob.c_str(), FNM_PATHNAME) == 0;
  });
}

}  // namespace

bool is_made_up(const std::string& name) {
  return hexadecimal_digits_at_end(name) >= kRandomLetters;
}

std::size_t random_letters_at_end(const std::string& name, bool is_inside_libc) {
  constexpr std::size_t kOfPython = 8;
  if (is_inside_libc) return kRandomLetters;
  const std::string end = name.substr(name.size() - std::min(name.size(), kOfPython));
  const auto is_letter = [](char letter) { return letter >= 'a' && letter <= 'z'; };
  const bool can_be_made_up = end.size() == kOfPython && std::ranges::all_of(end, [&](char letter) {
                                return is_digit(letter) || is_letter(letter) || letter == '_';
                              });
  // A name with a number has it at its end.
  const auto number = std::ranges::adjacent_find(
      end, [&](char one, char next) { return is_digit(one) && is_letter(next); });
  return can_be_made_up && number != end.end() ? kOfPython : 0;
}

std::string without_numbers(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;
  std::string pattern = path.substr(0, name);
  bool is_in_word = false;
  for (std::size_t at = name; at < path.size();) {
    std::size_t end = at;
    while (end < path.size() && is_digit(path[end])) ++end;
    const std::size_t hexadecimal = std::min(path.size(), path.find_first_not_of(kDigits, at));
    const bool is_whole_word =
        !is_in_word && (hexadecimal == path.size() || !is_alphanumeric(path[hexadecimal]));
    is_in_word = is_alphanumeric(path[at]);
    if (end == at) {
      pattern += path[at++];
      continue;
    }
    pattern += '*';
    at = is_whole_word ? hexadecimal : end;
  }
  return pattern;
}

std::vector<std::string> globs_for(const std::vector<std::string>& paths,
                                   const std::vector<std::string>& others,
                                   const std::vector<std::string>& refused,
                                   const Changing& changing) {
  std::map<std::string, std::size_t> alike;  // by the pattern of their globs
  for (const std::string& path : paths) alike[without_numbers(lasting_glob(path, changing))] += 1;
  std::vector<std::string> globs;
  for (const std::string& path : paths) {
    const std::string lasting = lasting_glob(path, changing);
    const std::string pattern = without_numbers(lasting);
    const bool is_random = changing.random_names.contains(path);
    const std::string of_this_run = is_random ? without_random_end(lasting) : lasting;
    // From the widest to the narrowest.
    std::string glob = glob_for(path);
    const std::string changed = without_changing_numbers(without_dates(of_this_run, changing.dates),
                                                         changing.process_numbers);
    if (!is_random && alike[pattern] >= kPatternNamesMin && !takes_any(pattern, others)) {
      glob = pattern;
    } else if (!takes_any(changed, refused)) {
      glob = changed;
    } else if (!takes_any(lasting, refused)) {
      glob = lasting;
    }
    if (std::ranges::find(globs, glob) == globs.end()) globs.push_back(std::move(glob));
  }
  std::vector<std::string> needed;
  std::ranges::copy_if(globs, std::back_inserter(needed),
                       [&](const std::string& glob) { return !is_covered(glob, globs); });
  return needed;
}

}  // namespace pawl::cli::watch
