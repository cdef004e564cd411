// A process that maps one file at a time, and does what it is asked, until it is killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace pawl::test {

inline constexpr std::size_t kFileBytes = 2 * 4096;

// What a whole file holds: one number in all of its words.
using Stamp = std::uint64_t;
std::optional<Stamp> stamp_of(const void* bytes);  // nothing: the words differ

enum class Order : char { open, commit, close, recover, recover_with_loss };

struct Answer {
  bool is_done = false;
  int error_number = 0;
  bool is_whole = false;  // of open: all of the file holds `stamp`
  Stamp stamp = 0;
  std::string text;  // why not
};

class Actor {
 public:
  Actor();
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  ~Actor() { kill(); }

  Answer ask(Order order, const std::string& path, Stamp stamp = 0);
  // Asks, and kills some time later; nothing: it had not answered.
  std::optional<Answer> ask_and_kill(Order order, const std::string& path, Stamp stamp,
                                     unsigned delay_us);
  void kill();
  // Another process takes the place of one that was killed.
  void begin();

 private:
  bool send(Order order, const std::string& path, Stamp stamp) const;
  std::optional<Answer> receive() const;

  pid_t process_ = 0;
  int channel_ = -1;
};

}  // namespace pawl::test
