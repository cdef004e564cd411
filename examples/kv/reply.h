// Replies in Redis's serialization protocol, version 2.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kv {

// What a request is answered with when it cannot be served.  Thrown before anything was changed,
// unless said otherwise.
class RequestError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Appends to a string.  What would make it pass kOutputBytesMax is a RequestError, so commands that
// change what they reply with reply first.
class Reply {
 public:
  explicit Reply(std::string& output) : output_(output) {}

  void simple(std::string_view text);
  // Line ends within the text become spaces, those behind it are left out.
  void error(std::string_view text);
  void integer(int64_t number);
  void bulk(std::string_view bytes);
  void number(double value);
  void null() { append("$-1\r\n"); }
  void null_array() { append("*-1\r\n"); }
  // Followed by as many replies.
  void array(size_t count);
  void ok() { append("+OK\r\n"); }

 private:
  void append(std::string_view bytes);
  void header(char type, int64_t number);

  std::string& output_;
};

}  // namespace kv
