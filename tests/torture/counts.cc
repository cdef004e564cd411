#include "torture/counts.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "medium/descriptor.h"

namespace pawl::test {

std::uint64_t Counts::of(const std::string& name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? 0 : found->second;
}

void Counts::add(const Counts& other) {
  for (const auto& [name, number] : other.numbers_) numbers_[name] += number;
}

nlohmann::ordered_json Counts::as_json() const {
  nlohmann::ordered_json json = {{"kills", of("kills")}, {"lost", of("lost")}};
  for (const auto& [name, number] : numbers_) json[name] = number;
  return json;
}

Counts Counts::from_json(const nlohmann::ordered_json& json) {
  Counts counts;
  for (const auto& [name, number] : json.items()) counts.numbers_[name] = number;
  return counts;
}

Results::Earlier Results::earlier(const std::string& mode) const {
  Earlier earlier;
  std::ifstream lines(path_);
  for (std::string line; !path_.empty() && std::getline(lines, line);) {
    const auto json = nlohmann::ordered_json::parse(line);
    if (json.at("mode") != mode) continue;
    earlier.counts.add(Counts::from_json(json.at("counts")));
    earlier.seed = json.at("seed").get<std::uint64_t>();
    earlier.next_case = json.at("next_case");
  }
  return earlier;
}

void Results::append(const Run& run, std::uint64_t next_case, const Counts& counts,
                     const std::string& note) const {
  if (path_.empty()) return;
  nlohmann::ordered_json json = {{"try", "killed"},  {"mode", run.mode},
                                 {"seed", run.seed}, {"next_case", next_case},
                                 {"note", note},     {"counts", counts.as_json()}};
  const std::string line = json.dump() + "\n";
  const Descriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid() ||
      ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error("cannot append to " + path_ + ": " + std::strerror(errno));
}

}  // namespace pawl::test
