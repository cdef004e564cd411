#include "request.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "bounds.h"
#include "text.h"

namespace kv {

RequestReader::Outcome RequestReader::next() {
  if (!error_.empty()) return Outcome::kBroken;
  arguments_.clear();
  for (;;) {
    if (!in_array_) {
      start_ = cursor_;
      pieces_.clear();
    }
    if (cursor_ == input_.size()) break;
    const bool array = in_array_ || input_[cursor_] == '*';
    const Step step = array ? read_array() : read_line_of_words();
    if (step == Step::kBroken) return Outcome::kBroken;
    if (step == Step::kIncomplete) break;
    if (array) {
      for (const Piece& piece : pieces_) {
        arguments_.push_back(std::string_view(input_).substr(start_ + piece.offset, piece.length));
      }
    } else {
      arguments_.assign(words_.begin(), words_.end());
    }
    if (!arguments_.empty()) return Outcome::kRequest;
  }
  forget_consumed();
  if (input_.size() > kRequestBytesMax) {
    broken("request exceeds the maximum size");
    return Outcome::kBroken;
  }
  return Outcome::kIncomplete;
}

size_t RequestReader::buffer_bytes() const {
  size_t bytes = input_.capacity() + pieces_.capacity() * sizeof(Piece) +
                 arguments_.capacity() * sizeof(std::string_view) +
                 words_.capacity() * sizeof(std::string);
  const size_t within = std::string().capacity();  // what a string needs no buffer for
  for (const std::string& word : words_) bytes += word.capacity() > within ? word.capacity() : 0;
  return bytes;
}

void RequestReader::forget_consumed() {
  input_.erase(0, start_);
  cursor_ -= start_;
  start_ = 0;
  give_back();
}

void RequestReader::give_back() {
  words_.clear();
  arguments_.clear();
  if (!in_array_) pieces_.clear();
  // Half of a request may be there, and it may go on to be as large as the one before.
  const auto shrink = [](auto& list) {
    const bool is_large = list.capacity() * sizeof(list[0]) > kIdleBufferBytes;
    if (is_large && list.size() < list.capacity() / 2) list.shrink_to_fit();
  };
  shrink(input_);
  shrink(pieces_);
  shrink(arguments_);
  shrink(words_);
}

RequestReader::Step RequestReader::broken(std::string text) {
  error_ = "ERR Protocol error: " + std::move(text);
  return Step::kBroken;
}

RequestReader::Step RequestReader::read_line_of_words() {
  const size_t end = input_.find('\n', cursor_);
  const size_t bytes_max = owes_login_ ? kLoginBulkBytesMax : kInlineBytesMax;
  if (std::min(end, input_.size()) - cursor_ > bytes_max) return broken("too big inline request");
  if (end == std::string::npos) return Step::kIncomplete;
  std::string_view line = std::string_view(input_).substr(cursor_, end - cursor_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto words_max = static_cast<size_t>(owes_login_ ? kLoginArgumentsMax : kArgumentsMax);
  if (!split_words(line, words_max, words_)) return broken("unbalanced quotes in request");
  if (words_.size() > words_max) return broken("unauthenticated inline request of too many words");
  cursor_ = end + 1;
  return Step::kDone;
}

RequestReader::Step RequestReader::read_number(std::string_view what, int64_t& number) {
  const size_t end = input_.find('\r', cursor_);
  if (end == std::string::npos) {
    if (input_.size() - cursor_ <= kInlineBytesMax) return Step::kIncomplete;
    return broken("too big " + std::string(what) + " count string");
  }
  if (end + 1 == input_.size()) return Step::kIncomplete;
  const char type = what == "bulk" ? '$' : '*';
  if (input_[cursor_] != type) {
    return broken(std::string("expected '$', got '") + input_[cursor_] + "'");
  }
  const auto parsed =
      parse_integer(std::string_view(input_).substr(cursor_ + 1, end - cursor_ - 1));
  const bool bulk = type == '$';
  const auto most = bulk ? static_cast<int64_t>(kBulkBytesMax) : kArgumentsMax;
  if (!parsed || *parsed > most || (bulk && *parsed < 0)) {
    return broken(bulk ? "invalid bulk length" : "invalid multibulk length");
  }
  const auto most_before_login =
      bulk ? static_cast<int64_t>(kLoginBulkBytesMax) : kLoginArgumentsMax;
  if (owes_login_ && *parsed > most_before_login) {
    return broken(bulk ? "unauthenticated bulk length" : "unauthenticated multibulk length");
  }
  number = *parsed;
  cursor_ = end + 2;
  return Step::kDone;
}

RequestReader::Step RequestReader::read_array() {
  if (!in_array_) {
    const Step step = read_number("mbulk", bulks_left_);
    if (step != Step::kDone) return step;
    in_array_ = true;
  }
  while (bulks_left_ > 0) {
    if (bulk_bytes_ < 0) {
      const Step step = read_number("bulk", bulk_bytes_);
      if (step != Step::kDone) return step;
    }
    const auto length = static_cast<size_t>(bulk_bytes_);
    if (input_.size() - cursor_ < length + 2) return Step::kIncomplete;
    pieces_.push_back({cursor_ - start_, length});
    cursor_ += length + 2;
    bulk_bytes_ = -1;
    --bulks_left_;
  }
  in_array_ = false;
  return Step::kDone;
}

namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// What the escape sequence at `at`, behind its backslash, stands for; moves `at` to its last
// character.
char unescape(std::string_view line, size_t& at) {
  constexpr std::string_view kLetters = "nrtba";
  constexpr std::string_view kMeanings = "\n\r\t\b\a";
  if (line[at] == 'x' && at + 2 < line.size()) {
    unsigned value = 0;
    const char* digits = line.data() + at + 1;
    if (std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      at += 2;
      return static_cast<char>(value);
    }
  }
  const size_t letter = kLetters.find(line[at]);
  return letter == std::string_view::npos ? line[at] : kMeanings[letter];
}

// Reads the quoted part that begins at `at`, behind its quote, up to its end.
bool read_quoted(std::string_view line, size_t& at, char quote, std::string& word) {
  for (; at < line.size() && line[at] != quote; ++at) {
    const bool escape = line[at] == '\\' && at + 1 < line.size();
    if (escape && quote == '"') {
      word += unescape(line, ++at);
    } else if (escape && line[at + 1] == '\'') {
      word += line[++at];
    } else {
      word += line[at];
    }
  }
  if (at == line.size()) return false;
  ++at;
  return at == line.size() || is_space(line[at]);
}

}  // namespace

bool split_words(std::string_view line, size_t words_max, std::vector<std::string>& words) {
  words.clear();
  size_t at = 0;
  for (;;) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size() || words.size() > words_max) return true;
    std::string& word = words.emplace_back();
    while (at < line.size() && !is_space(line[at])) {
      const char c = line[at++];
      if (c != '"' && c != '\'') {
        word += c;
      } else if (!read_quoted(line, at, c, word)) {
        return false;
      }
    }
  }
}

}  // namespace kv
