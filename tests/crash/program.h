// A program under test: it maps files, takes the steps of a workload, and tells the recorder what
// it was promised.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crash/recorder.h"
#include "mapping/options.h"
#include "workload/script.h"

namespace pawl::test {

// What keeps a file: Pawl, or what the kernel does for a shared mapping.
class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;  // as a crash: nothing is closed

  // The window.  Only the bytes of the file may be touched.
  virtual char* bytes() = 0;
  virtual Status sync(std::uint64_t offset, std::uint64_t length) = 0;
  virtual Status sync_later(std::uint64_t offset, std::uint64_t length) = 0;
  virtual Status wait() = 0;
  virtual Status roll_back(std::uint64_t offset, std::uint64_t length, const Content& to) = 0;
  virtual Status truncate(std::uint64_t size_bytes) = 0;
  // Stores were made; a kernel may now write pages back.
  virtual void idle() {}
  virtual Status close() = 0;
  virtual std::uint64_t size() const = 0;
};

struct SubjectOptions {
  Options pawl;
  bool plain = false;
  std::uint64_t window_pages = 0;
  unsigned seed = 1;
};

Result<std::unique_ptr<Subject>> open_subject(std::unique_ptr<Medium> medium,
                                              const SubjectOptions& options);
Status recover_pawl(Medium& medium);
Status recover_plain(Medium& medium);

struct RunOptions {
  const Workload* workload = nullptr;
  SubjectOptions subject;
  unsigned seed = 1;
  std::uint64_t steps = 0;
  bool can_mark = true;
  bool is_memory = false;
  Pauses pauses = Pauses::sometimes;
  bool touch_all_pages = false;  // before each commit: all are dirty, though few are changed
  bool other_writer = false;     // wrote to the file just before
  std::uint64_t journal_bytes_max = 0;
  Fault fault;
};

struct Run {
  Trace trace;
  std::string wrong;                         // empty: nothing
  std::optional<std::size_t> failed_before;  // the event before which the fault happened
  std::uint64_t operations = 0;
};

// Runs a program with a file for each of `start`, which are as some cut left them; recovered, they
// hold `contents`.
Run run_program(const RunOptions& options, const std::vector<StoredDisk>& start,
                const std::vector<Content>& contents);

}  // namespace pawl::test
