// Descriptors that arrive in messages.
#pragma once

#include <sys/socket.h>

#include <atomic>

namespace pawl {

// Called with each message that recvmsg() or recvmmsg() brought.  Null where nobody follows
// descriptors; the preload library sets it.
extern constinit std::atomic<void (*)(const msghdr&)> take_received_message;

inline void note_received(const msghdr& message) {
  if (message.msg_controllen == 0) return;
  if (const auto take = take_received_message.load()) take(message);
}

}  // namespace pawl
