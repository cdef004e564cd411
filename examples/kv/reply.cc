#include "reply.h"

#include <algorithm>
#include <charconv>

#include "bounds.h"
#include "text.h"

namespace kv {

void Reply::append(std::string_view bytes) {
  if (output_.size() + bytes.size() > kOutputBytesMax) {
    throw RequestError("ERR the reply would exceed " + std::to_string(kOutputBytesMax) +
                       " bytes; ask for less at once");
  }
  output_.append(bytes);
}

void Reply::header(char type, int64_t number) {
  char line[32];
  line[0] = type;
  char* end = std::to_chars(line + 1, line + sizeof line - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  append({line, static_cast<size_t>(end - line)});
}

void Reply::simple(std::string_view text) {
  append("+");
  append(text);
  append("\r\n");
}

void Reply::error(std::string_view text) {
  std::string line(text.substr(0, text.find_last_not_of("\r\n") + 1));
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  append("-");
  append(line);
  append("\r\n");
}

void Reply::integer(int64_t number) { header(':', number); }

void Reply::bulk(std::string_view bytes) {
  header('$', static_cast<int64_t>(bytes.size()));
  append(bytes);
  append("\r\n");
}

void Reply::number(double value) { bulk(format_double(value)); }

void Reply::array(size_t count) { header('*', static_cast<int64_t>(count)); }

}  // namespace kv
