// A fuzzed program's way to Pawl, so that the same calls are made of a Mapping and of the C
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "fuzz/call.h"
#include "fuzz/require.h"
#include "mapping/mapping.h"
#include "mapping/options.h"
#include "medium/page_runs.h"
#include "workload/content.h"

namespace pawl::fuzz {

using test::Content;

// No file has as many bytes.
inline constexpr std::uint64_t kTooLarge = (std::uint64_t{1} << 62) + 1;

class Face {
 public:
  Face() = default;
  Face(const Face&) = delete;
  Face& operator=(const Face&) = delete;
  virtual ~Face() = default;

  // With a window; the file is recovered if it was left by a crash.
  virtual Status open(const Options& options, const PageRun& window) = 0;
  virtual Status commit(char* address, std::size_t length) = 0;
  virtual Status queue(char* address, std::size_t length) = 0;
  virtual Status wait() = 0;
  virtual Status roll_back(char* address, std::size_t length) = 0;
  virtual Status truncate(std::uint64_t size_bytes) = 0;
  virtual Status close() = 0;
  // Ends as a process does that is killed.
  virtual void crash() = 0;
  virtual Status recover() = 0;
  // Calls that must be refused and change nothing.
  virtual void call_wrongly(const Call& call) = 0;
  // The file itself, and whether anything lies beside it.
  virtual Content file() = 0;
  virtual bool is_just_a_file() = 0;
  // The mapping as long as it is open: what can be done with it that the C functions cannot.
  virtual Mapping* mapping() = 0;
  virtual bool has_all_calls() const = 0;
};

// A Mapping over a disk in memory, which has extended attributes or not.
std::unique_ptr<Face> mapping_face(Content content, bool can_mark);
// The C functions over a real file: one at a time.
std::unique_ptr<Face> c_face(const Content& content);

inline void must_fail(const Status& status, int error_number, const char* what) {
  require(!status.ok(), [&] { return std::string("a wrong call is refused: ") + what; });
  require(status.error_number() == error_number, [&] {
    return std::string("a wrong call fails with the error it should: ") + what + ": " +
           std::to_string(status.error_number()) + " " + status.text();
  });
  require(!status.text().empty(), [&] { return std::string("a refusal says why: ") + what; });
}

}  // namespace pawl::fuzz
