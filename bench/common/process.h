// Each system lives in a process of its own, as in a program that uses only it: no system's signal
// handlers, page faults or background threads count for another.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pawl::bench {

// One end of the line between the conductor and a system's process.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  // False when the other side has gone.
  bool send(const void* bytes, std::size_t count);
  bool receive(void* bytes, std::size_t count);
  // Trivial types only.
  template <class T>
  bool send(const T& value) {
    return send(&value, sizeof value);
  }
  template <class T>
  bool receive(T& value) {
    return receive(&value, sizeof value);
  }
  // A count, and as many elements; at most kElementsMax.
  static constexpr std::size_t kElementsMax = std::size_t{1} << 24;
  template <class T>
  bool send_all(const std::vector<T>& values) {
    const std::size_t count = values.size();
    return send(count) && send(values.data(), count * sizeof(T));
  }
  template <class T>
  bool receive_all(std::vector<T>& values) {
    std::size_t count = 0;
    if (!receive(count) || count > kElementsMax) return false;
    values.resize(count);
    return receive(values.data(), count * sizeof(T));
  }
  void hang_up();

 private:
  int descriptor_;
};

class Process {
 public:
  // Runs `serve` in a new process.  It first makes its system, which may throw Unavailable, then
  // calls `ready`, and after that answers on the channel until the conductor goes.  When it throws,
  // the process says so on stderr and ends.
  using Ready = std::function<void()>;
  using Serve = std::function<void(Channel& channel, const Ready& ready)>;
  Process(std::string name, const Serve& serve);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // ends the process, and waits for it

  const std::string& name() const { return name_; }
  // Why the system cannot be had here; empty when it can.
  const std::string& unavailable() const { return unavailable_; }
  Channel& channel() { return *channel_; }
  // The channel failed: the process has ended.  Throws what is known about that.
  [[noreturn]] void fail();

 private:
  void greet();

  const std::string name_;
  pid_t process_ = -1;
  std::unique_ptr<Channel> channel_;
  std::string unavailable_;
};

}  // namespace pawl::bench
