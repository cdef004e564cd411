#include "cli/watch/neighbours.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "medium/block_medium.h"

namespace pawl::cli::watch {

namespace {

constexpr std::array<std::string_view, 7> kLogWords = {"wal",  "journal", "jnl", "log",
                                                       "redo", "undo",    "aof"};

// True of "-wal", ".log.1" and their kin; "-walrus" is another word.
bool is_log_ending(std::string_view ending, std::string_view but_not = {}) {
  ending.remove_prefix(std::min<std::size_t>(ending.size(), 1));
  const auto end_of_word = std::ranges::find_if_not(
      ending, [](unsigned char letter) { return std::isalpha(letter) != 0; });
  const std::string_view word =
      ending.substr(0, static_cast<std::size_t>(end_of_word - ending.begin()));
  return word != but_not && std::ranges::find(kLogWords, word) != kLogWords.end();
}

// Such as __db.001.
bool is_region_of_berkeley_db(std::string_view name) {
  constexpr std::string_view kStart = "__db.";
  return name.starts_with(kStart) && name.size() > kStart.size() &&
         std::ranges::all_of(name.substr(kStart.size()),
                             [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

}  // namespace

Neighbour neighbour_of(const std::string& file, const std::string& beside) {
  if (is_shared_state_by_name(beside) || beside.ends_with(kJournalSuffix)) return Neighbour::none;
  const auto ending_behind = [&](const std::string& start) -> std::string_view {
    if (!beside.starts_with(start) || beside.size() == start.size()) return {};
    const std::string_view ending = std::string_view(beside).substr(start.size());
    const bool is_other_name = std::isalnum(static_cast<unsigned char>(ending.front())) != 0;
    return is_other_name || ending.find('/') != std::string_view::npos ? std::string_view()
                                                                       : ending;
  };
  if (const std::string_view ending = ending_behind(file); !ending.empty())
    return is_log_ending(ending) ? Neighbour::log : Neighbour::other;
  const std::size_t name = file.rfind('/') + 1;
  const std::size_t dot = file.rfind('.');
  if (dot == std::string::npos || dot <= name) return Neighbour::none;
  const std::string_view ending = ending_behind(file.substr(0, dot));
  if (!is_log_ending(ending)) return Neighbour::none;
  // Many a program writes texts for people into a file of that name.
  return is_log_ending(ending, "log") ? Neighbour::log : Neighbour::other;
}

bool is_shared_state_by_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return path.find("/hsperfdata_") != std::string::npos || name == "lock.mdb" ||
         name == "mdbx.lck" || name.ends_with("-lock") || name.ends_with("-lck") ||
         name.ends_with("-shm") || is_region_of_berkeley_db(name);
}

}  // namespace pawl::cli::watch
