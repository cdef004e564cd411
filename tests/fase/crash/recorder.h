// Records what a process does to a direct mapping, as a trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fase/crash/memory_trace.h"

namespace pawl::test {

// One at a time in a process.  What the program stores is found by looking at the whole file after
// each of the run-time's steps; so it should be small.
class Recorder {
 public:
  // Of the file that is about to be opened.
  explicit Recorder(const std::string& path);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // What has been recorded is forgotten; the file as it stands is the trace's first state.  All
  // that was stored until now must be durable.
  void begin(std::uint64_t threads);
  // Of thread 0, 1, ...
  void operation_begins(std::uint32_t thread, std::uint64_t number);
  void operation_acknowledged(std::uint32_t thread, std::uint64_t number, std::uint64_t result);
  // Ends the recording.
  MemoryTrace take();

 private:
  class Observer;
  std::unique_ptr<Observer> observer_;
};

}  // namespace pawl::test
