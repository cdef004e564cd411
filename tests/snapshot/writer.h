// A process that commits generation after generation until it is killed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "snapshot/state.h"
#include "support/killed_process.h"

namespace pawl::test {

struct WriterOptions {
  int apply = 0;    // enum pawl_apply
  int tracker = 0;  // enum pawl_tracker
  int medium = 0;   // enum pawl_medium
  std::uint64_t journal_bytes = std::uint64_t{256} << 10;
  std::uint64_t large_every = 0;
  std::uint64_t reopen_every = 0;  // generations; 0: it never unmaps the file
  std::uint64_t queued = 0;        // of so many commits in a row but the last with MS_ASYNC
};

class Writer {
 public:
  // `counted` is a file beside, of the generation that was last acknowledged.
  Writer(std::string path, const WriterOptions& options);
  std::uint64_t acknowledged() const;  // the last generation
  // For one later than `seen`; false: the writer has ended.
  bool wait_for_more_than(std::uint64_t seen) const;
  void kill() { process_->kill(); }

 private:
  struct Unmap {
    void operator()(std::atomic<std::uint64_t>* counter) const;
  };
  std::unique_ptr<std::atomic<std::uint64_t>, Unmap> counter_;
  std::unique_ptr<KilledProcess> process_;
};

// For main(): runs the writer, and does not return, if the arguments are one's.
void be_a_writer_if_asked(int argc, char** argv);

}  // namespace pawl::test
