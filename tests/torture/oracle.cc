#include "torture/oracle.h"

#include <fmt/format.h>

namespace pawl::test {

Oracle::Oracle(const Workload& workload, WriterHistory history)
    : workload_(workload), history_(std::move(history)) {
  note_possible();
}

void Oracle::note_possible() {
  std::vector<Possible> possible;
  Script script(workload_, history_.seed, history_.start);
  for (std::uint64_t commit = 0;; ++commit) {
    if (commit >= history_.acknowledged) possible.push_back({commit, script.model().committed()});
    if (commit == history_.begun) break;
    while (script.commits() == commit) script.next();
  }
  possible_ = std::move(possible);
}

void Oracle::settle_on(std::size_t index) {
  Possible found = std::move(possible_[index]);
  history_.begun = history_.acknowledged = found.commit;
  possible_.clear();
  possible_.push_back(std::move(found));
}

std::string Oracle::complaint(const std::string& found,
                              const std::optional<std::uint64_t>& earlier) const {
  if (earlier.has_value())
    return fmt::format("lost: {} is that of commit {}, but commit {} was acknowledged", found,
                       *earlier, history_.acknowledged);
  return fmt::format("damaged: {} is that of no commit (acknowledged {}, begun {})", found,
                     history_.acknowledged, history_.begun);
}

std::optional<std::string> Oracle::find(const Content& found) {
  for (std::size_t i = 0; i < possible_.size(); ++i) {
    if (found.first_difference(possible_[i].content).has_value()) continue;
    settle_on(i);
    return std::nullopt;
  }
  std::optional<std::uint64_t> earlier;
  Script script(workload_, history_.seed, history_.start);
  for (std::uint64_t commit = 0; commit < history_.acknowledged; ++commit) {
    if (!found.first_difference(script.model().committed()).has_value()) earlier = commit;
    while (script.commits() == commit) script.next();
  }
  std::string text = complaint("the file's content", earlier);
  if (!earlier.has_value()) {
    for (const Possible& possible : possible_) {
      text += fmt::format("; it has {} bytes and commit {} has {}, and differs at byte {}",
                          found.size(), possible.commit, possible.content.size(),
                          *found.first_difference(possible.content));
      if (text.size() > 1000) break;
    }
  }
  return text;
}

std::optional<std::string> Oracle::find_checksum(std::uint64_t found) {
  for (std::size_t i = 0; i < possible_.size(); ++i) {
    if (possible_[i].content.checksum() != found) continue;
    settle_on(i);
    return std::nullopt;
  }
  std::optional<std::uint64_t> earlier;
  Script script(workload_, history_.seed, history_.start);
  for (std::uint64_t commit = 0; commit < history_.acknowledged; ++commit) {
    if (script.model().committed().checksum() == found) earlier = commit;
    while (script.commits() == commit) script.next();
  }
  return complaint("what the next writer found", earlier);
}

void Oracle::writer_was(std::uint64_t seed, std::uint64_t begun, std::uint64_t acknowledged) {
  history_ = {std::move(possible_.front().content), seed, begun, acknowledged};
  note_possible();
}

}  // namespace pawl::test
