// What was tried, in numbers, with names; and a file of them that grows over many runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace pawl::test {

class Counts {
 public:
  std::uint64_t& operator[](const std::string& name) { return numbers_[name]; }
  std::uint64_t of(const std::string& name) const;
  void add(const Counts& other);
  void clear() { numbers_.clear(); }
  bool empty() const { return numbers_.empty(); }
  nlohmann::ordered_json as_json() const;
  static Counts from_json(const nlohmann::ordered_json& json);

 private:
  std::map<std::string, std::uint64_t> numbers_;
};

// A line of JSON for each piece of a run.  Several runs may append at the same time.
class Results {
 public:
  struct Run {
    std::string mode;
    std::uint64_t seed;
  };
  struct Earlier {
    Counts counts;
    std::optional<std::uint64_t> seed;  // of the last line ...
    std::uint64_t next_case = 0;        // ... and where that run stopped
  };

  // An empty path: nothing is kept.
  explicit Results(std::string path) : path_(std::move(path)) {}

  // The lines of one mode that are there.
  Earlier earlier(const std::string& mode) const;
  void append(const Run& run, std::uint64_t next_case, const Counts& counts,
              const std::string& note) const;

 private:
  std::string path_;
};

}  // namespace pawl::test
