// A medium over a real file that records, in order, what is written, flushed and resized, and can
// refuse the n-th of them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "medium/medium.h"

namespace pawl::test {

enum class Which { base, journal };
enum class Act { read, write, flush, resize, reserve, punch, zero };

struct Event {
  Which which;
  Act act;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool operator==(const Event&) const = default;
};

// Shared by the medium and its test; any thread.
class Watch {
 public:
  // Decides the fate of an event before it happens: a failure is what the caller sees.  Called in
  // the thread that acts, under no lock, so that it may block.
  using Judge = std::function<Status(const Event&)>;
  void judge_with(Judge judge);
  // The same, of an event that has happened: a failure is what the caller sees although all was
  // done.
  void judge_afterwards_with(Judge judge);
  // Runs once, before the mark is next looked at.
  void before_mark(std::function<void()> meanwhile);
  void looks_at_mark();
  Status happens(const Event& event);
  Status happened(const Event& event);
  std::vector<Event> take_events();

 private:
  std::mutex mutex_;
  std::vector<Event> events_;
  Judge judge_;
  Judge judge_afterwards_;
  std::function<void()> before_mark_;
};

// A file of a medium alone; it does not own the real one.
std::unique_ptr<MediumFile> watched_file(MediumFile& real, Which which,
                                         std::shared_ptr<Watch> watch);
std::unique_ptr<Medium> watched_medium(std::unique_ptr<Medium> real, std::shared_ptr<Watch> watch);

}  // namespace pawl::test
