#include "medium/lock_table.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include "medium/descriptor.h"

namespace pawl {
namespace {

constexpr const char* kTable = "/proc/locks";
constexpr int kReadingsMax = 30;
// The kernel hands out whole lines, a page at most, unless one line is longer.
constexpr std::size_t kReadBytes = 4 * kLockTablePieceBytes;
constexpr std::size_t kLineBytesMax = 256;
// So many lines in a row that two pieces have are the same locks.
constexpr std::ptrdiff_t kSeamLines = 4;

using Lines = std::vector<std::string>;
using Pieces = std::vector<std::string>;

// Goes through the table, a piece at a time, and as fast as can be: the table waits for nobody.
class Stream {
 public:
  Stream() : file_(::open(kTable, O_RDONLY | O_CLOEXEC)) {}

  bool is_open() const { return file_.valid(); }
  bool has_ended() const { return has_ended_; }
  const Pieces& pieces() const { return pieces_; }
  bool read(std::size_t bytes) {
    if (has_ended_) return true;
    std::array<char, kReadBytes> buffer;
    const ssize_t length = ::read(file_.get(), buffer.data(), bytes);
    if (length < 0) return false;
    has_ended_ = length == 0;
    if (!has_ended_) pieces_.emplace_back(buffer.data(), static_cast<std::size_t>(length));
    return true;
  }

 private:
  Descriptor file_;
  bool has_ended_ = false;
  Pieces pieces_;
};

// Of each piece.  A line that was begun in one is of that moment.
std::vector<Lines> lines_of(const Pieces& pieces) {
  std::vector<Lines> all(pieces.size());
  std::string begun;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::string_view rest = pieces[i];
    for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      const bool is_of_last = !begun.empty();
      begun += rest.substr(0, end);
      rest.remove_prefix(end + 1);
      // "12: POSIX ...": the number changes with every lock before it.
      begun.erase(0, begun.find(':') + 1);
      all[is_of_last ? i - 1 : i].push_back(std::exchange(begun, {}));
    }
    begun += rest;
  }
  return all;
}

// Nothing lies between the two: some of the last lines of `piece` are in `next`, too.
bool is_continued_by(const Lines& piece, const Lines& next) {
  for (auto end = piece.end(); end - piece.begin() >= kSeamLines; --end)
    if (std::search(next.begin(), next.end(), end - kSeamLines, end) != next.end()) return true;
  return false;
}

Result<std::optional<Lines>> read_once() {
  Stream ahead;
  Stream behind;
  const auto failed = [] { return FailedCall{errno, std::string("cannot read ") + kTable}; };
  if (!ahead.is_open() || !behind.is_open() || !ahead.read(kLockTablePieceBytes / 2))
    return failed();
  while (!ahead.has_ended() || !behind.has_ended())
    if (!behind.read(kReadBytes) || !ahead.read(kReadBytes)) return failed();
  return join_lock_table(behind.pieces(), ahead.pieces());
}

}  // namespace

// In the order in which they were read; the first one of the descriptor ahead is a beginning only.
std::optional<Lines> join_lock_table(const Pieces& behind, const Pieces& ahead) {
  Lines whole;
  if (behind.empty() && ahead.empty()) return whole;
  const std::vector<Lines> lines_behind = lines_of(behind);
  const std::vector<Lines> lines_ahead = lines_of(ahead);
  const Lines* last = nullptr;
  for (std::size_t i = 0;; ++i) {
    const bool is_ahead = i % 2 != 0;
    const Pieces& pieces = is_ahead ? ahead : behind;
    const std::size_t number = (i + 1) / 2;
    if (number >= pieces.size()) return std::nullopt;
    const Lines& lines = (is_ahead ? lines_ahead : lines_behind)[number];
    if (last != nullptr && !is_continued_by(*last, lines)) return std::nullopt;
    whole.insert(whole.end(), lines.begin(), lines.end());
    // A full piece is no end: what followed it may have moved to before it.
    const bool is_full = pieces[number].size() > kLockTablePieceBytes - kLineBytesMax;
    if (number + 1 == pieces.size() && !is_full) return whole;
    last = &lines;
  }
}

Result<std::vector<std::string>> read_lock_table() {
  for (int reading = 0; reading < kReadingsMax; ++reading) {
    auto lines = read_once();
    if (!lines.ok())
      return Status::failure(
          ENOTSUP, lines.status().text() + ", which lists the writers of files; mount /proc");
    if (lines.value().has_value()) return std::move(*lines.value());
  }
  return Status::failure(EBUSY, std::string(kTable) +
                                    ", which lists the writers of files, changes faster than it "
                                    "can be read: some program takes and gives up very many locks; "
                                    "try again");
}

}  // namespace pawl
