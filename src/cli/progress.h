// A line on stderr while something takes longer than a second, when a person is watching.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace pawl::cli {

// Speaks from construction to destruction; silent when stderr is no terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Any thread may call.  With total 0 only the time is shown.
  void at(std::uint64_t done, std::uint64_t total) {
    done_ = done;
    total_ = total;
  }

 private:
  void speak();

  std::string what_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> total_ = 0;
  std::mutex mutex_;
  std::condition_variable finished_changed_;
  bool finished_ = false;
  std::thread speaker_;
};

}  // namespace pawl::cli
