#include "torture/writer.h"

#include <algorithm>
#include <cstdlib>

namespace pawl::test {
namespace {

constexpr std::size_t kLastLinesMax = 60;

}  // namespace

Writer::Writer(const std::vector<std::string>& command, std::size_t files)
    : files_(files),
      child_(Child::of_program(command, [this](const std::string& line) { take(line); })) {}

bool Writer::all(const Condition& condition) const {
  return std::all_of(files_.begin(), files_.end(), condition);
}

bool Writer::wait_for_all(const Condition& condition) {
  const auto stopped = child_.read_until(Clock::now() + kHungAfter, [&] { return all(condition); });
  hung_ = hung_ || stopped == Child::Stopped::deadline;
  return stopped == Child::Stopped::enough;
}

bool Writer::wait_for_commits(Clock::time_point deadline, std::uint64_t count) {
  const auto begun = [&] {
    std::uint64_t sum = 0;
    for (const Progress& file : files_) sum += file.begun;
    return sum >= count;
  };
  return child_.read_until(deadline, begun) == Child::Stopped::enough;
}

// "[FILE ]WORD[ NUMBER]"; anything else is a complaint, and only kept.
void Writer::take(const std::string& line) {
  last_lines_.push_back(line);
  if (last_lines_.size() > kLastLinesMax) last_lines_.pop_front();
  std::size_t at = 0;
  std::size_t number = 0;
  if (files_.size() > 1) {
    at = line.find(' ');
    if (at == std::string::npos || line.find_first_not_of("0123456789") != at) return;
    number = std::strtoul(line.c_str(), nullptr, 10);
    at += 1;
  }
  if (number >= files_.size()) return;
  Progress& file = files_[number];
  const std::size_t space = line.find(' ', at);
  const std::string word = line.substr(at, space - at);
  const std::uint64_t value =
      space == std::string::npos ? 0 : std::strtoull(line.c_str() + space, nullptr, 10);
  if (word == "holds") file.holds = value;
  if (word == "ready") file.ready = true;
  if (word == "begin") file.begun = value;
  if (word == "done") file.acknowledged = value;
  if (word == "full") file.times_full += 1;
  if (word == "closing") file.closing = true;
  if (word == "unclosed") file.unclosed = true;
  if (word == "end") file.ended = true;
}

}  // namespace pawl::test
