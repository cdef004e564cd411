// Damages journals that Pawl wrote in every way that is small enough to be tried in full, and
// recovers from each: every byte set to other values, every length that the journal may be cut to,
// every sector and block lost or replaced by what once stood there.
//
// What recovery must do follows from what was damaged: an acknowledged commit that a later record
// tells of is never dropped in silence, a commit that nothing tells of may end the journal, and
// what has no meaning changes nothing.  No other state is ever made.
//
// It ends early when so much is wrong that more would not help.
//
// Exit status: 0 all as it must be; 1 something else; 2 the question was not understood.

#include <malloc.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string>

#include "fuzz/format_by_document.h"
#include "fuzz/written_journal.h"
#include "journal/replay.h"
#include "mapping/mapping.h"

namespace pawl::fuzz {
namespace {

constexpr std::size_t kSectorBytes = 512;
constexpr std::size_t kExtensionBytesMax = 2 * kPageBytes;
constexpr int kComplaintsMax = 10;  // of what is wrong; then there is nothing more to try
constexpr std::uint64_t kWholeRecoveryEvery = 97;

using document::Bytes;

struct Expected {
  bool refused = false;
  std::size_t records = 0;  // whose state is reached, when it is not refused
};

bool stands(const WrittenJournal& journal, Bytes damaged, std::size_t from, std::size_t length) {
  return from + length <= damaged.size() &&
         std::memcmp(journal.bytes.data() + from, damaged.data() + from, length) == 0;
}

// Something that is intact knew of all records up to `sequence`, or of the header's generation.
bool is_told(const WrittenJournal& journal, Bytes damaged,
             const std::function<bool(const WrittenRecord&)>& tells) {
  for (const WrittenRecord& record : journal.records) {
    if (tells(record) && stands(journal, damaged, record.position, document::kRecordBytes))
      return true;
  }
  return false;
}

Expected expected(const WrittenJournal& journal, Bytes damaged) {
  constexpr Expected kRefused{.refused = true};
  for (const std::size_t slot : {std::size_t{0}, document::kSlot}) {
    if (slot + document::kHeaderBytes <= damaged.size() &&
        document::magic_at(damaged, slot, "PAWLJRNL") &&
        document::number_at(damaged, slot + document::kHeaderVersion, 4) > 3)
      return kRefused;
  }
  const std::size_t newest = journal.newest_slot * document::kSlot;
  if (damaged.size() <
      document::number_at(journal.bytes, newest + document::kHeaderJournalBytes, 8))
    return kRefused;
  if (!stands(journal, damaged, newest, document::kHeaderBytes)) {
    // The older header, if there is one, leads to all the newer one led to, as long as nothing was
    // written after that.
    const bool told = is_told(journal, damaged, [&](const WrittenRecord& record) {
      return record.generation == journal.generation;
    });
    const std::size_t older = (1 - journal.newest_slot) * document::kSlot;
    if (told || !journal.has_older_header ||
        !stands(journal, damaged, older, document::kHeaderBytes))
      return kRefused;
  }
  for (std::size_t i = 0; i < journal.records.size(); ++i) {
    const WrittenRecord& record = journal.records[i];
    if (stands(journal, damaged, record.position, record.bytes) &&
        round_up(record.position + record.bytes, journal.block_bytes) <= damaged.size())
      continue;
    const bool told = is_told(journal, damaged, [&](const WrittenRecord& later) {
      return later.sequence > record.sequence && later.durable_sequence >= record.sequence;
    });
    return told ? kRefused : Expected{.refused = false, .records = i};
  }
  return {.refused = false, .records = journal.records.size()};
}

struct Counts {
  std::uint64_t states = 0;
  std::uint64_t refused = 0;
  std::uint64_t shortened = 0;
  std::uint64_t wrong = 0;
};

class Damage {
 public:
  Damage(const WrittenJournal& journal, Counts& counts, std::string replay)
      : journal_(journal),
        counts_(counts),
        replay_(std::move(replay)),
        disk_(journal.disk()),
        whole_(*disk_.journal) {}

  void set_byte(std::size_t at, std::byte value) {
    bytes_ = journal_.bytes;
    if (bytes_[at] == value) return;
    bytes_[at] = value;
    disk_.journal = whole_;
    disk_.journal->write(at, {&value, 1});
    judge("--damage byte --at " + std::to_string(at) + " --value " +
          std::to_string(std::to_integer<unsigned>(value)));
  }
  void cut(std::size_t size) {
    bytes_ = journal_.bytes;
    bytes_.resize(size);
    disk_.journal = whole_;
    disk_.journal->resize(size);
    judge("--damage length --at " + std::to_string(size));
  }
  // `with` replaces what stands at its place.
  void replace(const char* kind, std::size_t at, Bytes with) {
    if (stands_already(at, with)) return;
    bytes_ = journal_.bytes;
    std::memcpy(bytes_.data() + at, with.data(), with.size());
    disk_.journal = whole_;
    disk_.journal->write(at, with);
    judge(std::string("--damage ") + kind + " --at " + std::to_string(at));
  }

  bool go_on() const { return counts_.wrong < kComplaintsMax; }

 private:
  bool stands_already(std::size_t at, Bytes with) const {
    return std::memcmp(journal_.bytes.data() + at, with.data(), with.size()) == 0;
  }

  const test::Content& state(std::size_t records) const {
    return records == 0 ? journal_.base : journal_.records[records - 1].after;
  }

  void judge(const std::string& recipe) {
    counts_.states += 1;
    const Expected expect = expected(journal_, bytes_);
    if (expect.refused) {
      counts_.refused += 1;
    } else if (expect.records < journal_.records.size()) {
      counts_.shortened += 1;
    }
    const std::string problem = recovered(expect);
    if (problem.empty()) return;
    counts_.wrong += 1;
    std::printf("WRONG: journal %s: %s\n  to try it again: %s --journal %s %s\n",
                journal_.name.c_str(), problem.c_str(), replay_.c_str(), journal_.name.c_str(),
                recipe.c_str());
  }

  // Empty, or what is wrong.
  std::string recovered(const Expected& expect) const {
    test::MemoryDisk disk(disk_);
    const bool wholly = counts_.states % kWholeRecoveryEvery == 0;
    const Status status = wholly ? recover(*disk.open()).status() : replayed(disk);
    const test::StoredDisk after = disk.state();
    if (wholly && status.ok() && (after.journal.has_value() || after.mark.has_value()))
      return "recovered, journal or mark is still there";
    if (!wholly || !status.ok()) {
      if (!after.journal.has_value() || after.journal->first_difference(*disk_.journal).has_value())
        return "the journal changed";
      if (!after.mark.has_value() || after.mark->journal_id != disk_.mark->journal_id)
        return "the mark changed";
    }
    if (!status.ok()) {
      if (status.text().empty()) return "it was refused without a word";
      if (status.error_number() != EBADMSG && status.error_number() != ENOTSUP)
        return "it was refused with error " + std::to_string(status.error_number());
      if (after.base.first_difference(disk_.base).has_value()) return "refused, the file changed";
      if (!expect.refused) return "it was refused: " + status.text();
      return {};
    }
    if (expect.refused) return "commits are lost and nobody was told";
    return reached(after.base, expect.records);
  }

  // The part of recovery that reads; the rest makes the journal an empty one and removes it.
  static Status replayed(test::MemoryDisk& disk) {
    const auto medium = disk.open();
    auto journal = medium->acquire_journal(false);
    if (!journal.ok()) return journal.status();
    return journal::replay(*medium, *journal.value().file).status();
  }

  std::string reached(const test::Content& content, std::size_t records) const {
    const auto is_state = [&](std::size_t count) {
      return !content.first_difference(state(count)).has_value();
    };
    if (is_state(records)) return {};
    for (std::size_t count = 0; count <= journal_.records.size(); ++count) {
      if (!is_state(count)) continue;
      return "the file is as after " + std::to_string(count) + " of " +
             std::to_string(journal_.records.size()) + " records and not after " +
             std::to_string(records);
    }
    return "the file is in a state that no commit made";
  }

  const WrittenJournal& journal_;
  Counts& counts_;
  const std::string replay_;
  test::StoredDisk disk_;
  const test::Content whole_;
  std::vector<std::byte> bytes_;
};

// ------------------------------------------------------------------------------------- all damage

enum class Values { few, some, all };

std::set<std::byte> values_for(std::byte byte, std::size_t at, Values values) {
  if (values == Values::few) return {byte ^ std::byte(1u << at % 8), ~byte, std::byte{0}};
  std::set<std::byte> chosen{std::byte{0}, std::byte{0xFF}, ~byte};
  for (unsigned bit = 0; bit < 8; ++bit) chosen.insert(byte ^ std::byte(1u << bit));
  return chosen;
}

void try_bytes(const WrittenJournal& journal, Damage& damage, Values values) {
  for (std::size_t at = 0; at < journal.bytes.size() && damage.go_on(); ++at) {
    if (values == Values::all) {
      for (unsigned value = 0; value < 256; ++value) damage.set_byte(at, std::byte(value));
      continue;
    }
    for (const std::byte value : values_for(journal.bytes[at], at, values))
      damage.set_byte(at, value);
  }
}

void try_lengths(const WrittenJournal& journal, Damage& damage) {
  for (std::size_t size = 0; size < journal.bytes.size() + kExtensionBytesMax && damage.go_on();
       ++size) {
    if (size != journal.bytes.size()) damage.cut(size);
  }
}

// Sectors, blocks and pairs of blocks.
void try_pieces(const WrittenJournal& journal, Damage& damage) {
  for (const std::size_t piece : {kSectorBytes, kPageBytes, 2 * kPageBytes}) {
    const std::vector<std::byte> zeros(piece);
    const std::vector<std::byte> ones(piece, std::byte{0xFF});
    for (std::size_t at = 0; at + piece <= journal.bytes.size() && damage.go_on(); at += piece) {
      damage.replace("zeros", at, zeros);
      damage.replace("ones", at, ones);
      for (const auto& earlier : journal.earlier) {
        if (at + piece <= earlier.size())
          damage.replace("earlier", at, std::span(earlier).subspan(at, piece));
      }
    }
  }
}

struct Question {
  Values values = Values::some;
  std::string journal;  // empty: all
  std::string damage;   // empty: all
  std::size_t at = 0;
  unsigned value = 0;
};

void answer(const Question& question, const WrittenJournal& journal, Damage& damage) {
  if (question.damage == "byte") {
    if (question.at < journal.bytes.size()) damage.set_byte(question.at, std::byte(question.value));
  } else if (question.damage == "length") {
    damage.cut(question.at);
  } else if (question.damage.empty()) {
    try_bytes(journal, damage, question.values);
    try_lengths(journal, damage);
    try_pieces(journal, damage);
  } else {
    try_pieces(journal, damage);
  }
}

constexpr const char* kUsage =
    "usage: journal_damage [--few-values|--all-values] [--journal NAME]\n"
    "                      [--damage byte|length|zeros|ones|earlier --at N [--value N]]\n"
    "  --all-values  each byte takes all other values, and not only its single bits flipped, 0,\n"
    "                255 and its complement\n"
    "  --few-values  each byte takes three: one of its bits flipped, which goes by its place, its\n"
    "                complement and 0\n";

bool understand(int count, char** arguments, Question& question) {
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--all-values" || argument == "--few-values") {
      question.values = argument == "--all-values" ? Values::all : Values::few;
      continue;
    }
    if (i + 1 == count) return false;
    const char* const value = arguments[++i];
    if (argument == "--journal")
      question.journal = value;
    else if (argument == "--damage")
      question.damage = value;
    else if (argument == "--at")
      question.at = std::strtoull(value, nullptr, 10);
    else if (argument == "--value")
      question.value = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
    else
      return false;
  }
  return true;
}

int run(int count, char** arguments) {
  Question question;
  if (!understand(count, arguments, question)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  // A megabyte that the reader takes and gives back each time should not come from the kernel.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 28);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 28);
  Counts counts;
  bool found = false;
  for (const WrittenJournal& journal : written_journals()) {
    if (!question.journal.empty() && question.journal != journal.name) continue;
    found = true;
    const Counts before = counts;
    Damage damage(journal, counts, arguments[0]);
    answer(question, journal, damage);
    std::printf("%-20s %zu bytes, %zu records: %lu states, %lu refused, %lu shortened, %lu wrong\n",
                journal.name.c_str(), journal.bytes.size(), journal.records.size(),
                counts.states - before.states, counts.refused - before.refused,
                counts.shortened - before.shortened, counts.wrong - before.wrong);
    std::fflush(stdout);
    if (!damage.go_on()) break;
  }
  if (!found) {
    std::fprintf(stderr, "there is no journal %s\n", question.journal.c_str());
    return 2;
  }
  std::printf(
      "{\"try\":\"fuzzed\",\"part\":\"damage\",\"states\":%lu,\"refused\":%lu,\"shortened\":%lu,"
      "\"wrong\":%lu}\n",
      counts.states, counts.refused, counts.shortened, counts.wrong);
  return counts.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pawl::fuzz

int main(int count, char** arguments) { return pawl::fuzz::run(count, arguments); }
