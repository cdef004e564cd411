// What went wrong with a mapping: the last failure, for people, and the one after which there are
// no more commits (law 8).  Any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "mapping/statistics.h"
#include "medium/status.h"

namespace pawl {

class Failures {
 public:
  // Notes a failure; EIO and its like are final.
  void take_note(const Status& status) noexcept;
  // The same, if it is one, and returns it.
  Status note(Status status);
  void note_final(const Status& status) noexcept;
  bool has_final() const { return has_final_.load(); }
  std::string final_text() const;
  // Fills in the last one.
  void describe(MappingStatistics& statistics) const;

 private:
  void note_last(const Status& status) noexcept;  // with mutex_ held

  mutable std::mutex mutex_;
  std::atomic<bool> has_final_{false};
  Status final_;
  int last_number_ = 0;
  pawl_error last_code_ = PAWL_ERROR_NONE;
  std::string last_;
};

}  // namespace pawl
