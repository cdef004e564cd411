// Takes requests out of what a client sent: arrays of bulk strings, or lines of words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kv {

using Arguments = std::span<const std::string_view>;

class RequestReader {
 public:
  enum class Outcome {
    kRequest,     // arguments() are those of the next request, at least one
    kIncomplete,  // more must be appended first
    kBroken,      // nothing can be read any more; error() says why
  };

  void append(std::string_view bytes) { input_.append(bytes); }

  // From now on its requests may be small ones only, or of any kind.
  void owes_login(bool owes) { owes_login_ = owes; }

  Outcome next();

  // What its buffers take.
  size_t buffer_bytes() const;

  // Valid until the next call of append() or next().
  Arguments arguments() const { return arguments_; }
  const std::string& error() const { return error_; }

 private:
  struct Piece {
    size_t offset;  // from the start of the request
    size_t length;
  };
  enum class Step { kDone, kIncomplete, kBroken };

  Step read_line_of_words();
  Step read_array();
  // The number behind the type character at the cursor.
  Step read_number(std::string_view what, int64_t& number);
  Step broken(std::string text);
  void forget_consumed();
  // Gives back what a large request took, and the words of a line.
  void give_back();

  std::string input_;
  size_t start_ = 0;   // of the request that is being read
  size_t cursor_ = 0;  // what of the input was read
  bool owes_login_ = false;
  bool in_array_ = false;
  int64_t bulks_left_ = 0;
  int64_t bulk_bytes_ = -1;  // -1: its length was not read yet
  std::vector<Piece> pieces_;
  std::vector<std::string> words_;
  std::vector<std::string_view> arguments_;
  std::string error_;
};

// Splits a line into words, with "quoted \x00 ones" and 'others', and goes no further than the
// first word behind so many.  False when a quote does not end.
bool split_words(std::string_view line, size_t words_max, std::vector<std::string>& words);

}  // namespace kv
