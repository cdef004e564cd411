// One connection.
#pragma once

#include <uv.h>

#include <cstddef>
#include <string>

#include "bounds.h"
#include "request.h"

namespace kv {

struct Client {
  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&handle); }
  size_t unsent_bytes() const { return round.size() + unsent.size() + sending.size(); }
  // What its buffers take.
  size_t buffer_bytes() const {
    return reader.buffer_bytes() + round.capacity() + unsent.capacity() + sending.capacity();
  }
  // Nothing more of what it sends is served, and nothing more is sent to it.
  void abandon() { ended = abandoned = true; }

  union {
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  } handle;
  uv_write_t write;

  RequestReader reader;
  std::string round;         // replies that must not leave before the round is committed
  size_t round_replies = 0;  // how many
  std::string unsent;        // replies of rounds before
  std::string sending;       // what the event loop is sending

  size_t counted_bytes = 0;  // of its buffers, in what all clients take

  bool authenticated = true;
  bool reading = false;
  bool at_end = false;             // it sends no more
  bool ended = false;              // what it sends is not served any more
  bool abandoned = false;          // what waits for it is not sent any more
  bool put_off = false;            // it may have sent more requests, which wait until replies left
  bool awaits_resumption = false;  // and they left
  bool closing = false;
};

// Empties a buffer, and gives it back where it is large.
inline void empty(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kIdleBufferBytes) std::string().swap(buffer);
}

}  // namespace kv
