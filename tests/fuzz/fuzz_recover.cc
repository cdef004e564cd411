// A file, its mark and any bytes as its journal: recovery makes of the file what the document says,
// or refuses and leaves everything as it was.  A recovery that was cut short by a failing disk is
// completed by the next.  What was recovered can be worked with.
//
// The input: 8 bytes that set the scene, then the journal.

#include <cerrno>
#include <optional>

#include "fuzz/format_by_document.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "fuzz/written_journal.h"
#include "mapping/mapping.h"
#include "support/memory_medium.h"
#include "support/watched_medium.h"
#include "workload/random.h"

namespace pawl::fuzz {

const std::size_t kPrologueBytes = 8;

namespace {

enum Flag : unsigned {
  kCanMark = 1,
  kAcceptLoss = 2,
  kMarked = 4,
  kMarkIsAnothers = 8,
  kNoJournal = 16,
  kOpen = 32,  // by a mapping that goes on, not by recover()
  kFilesAreSmall = 64,
};
constexpr std::uint64_t kSmallFileBytesMax = 64 << 10;
constexpr std::uint64_t kLargeFileBytesMax = ~std::uint64_t{0} >> 1;

std::vector<std::byte> prologue(unsigned flags, unsigned failing_change, std::size_t base_bytes) {
  std::vector<std::byte> bytes(kPrologueBytes);
  bytes[0] = static_cast<std::byte>(flags);
  bytes[1] = static_cast<std::byte>(failing_change);
  document::put_number(bytes, 2, 2, base_bytes);
  return bytes;
}

struct Scene {
  unsigned flags = 0;
  unsigned failing_change = 0;  // of the file; 0: none fails
  test::StoredDisk disk;
  std::vector<std::byte> journal;  // empty where there is none

  bool has(Flag flag) const { return (flags & flag) != 0; }
  test::MemoryDiskOptions options() const {
    // What is there already fits.
    const std::uint64_t small = std::max<std::uint64_t>(kSmallFileBytesMax, journal.size());
    return {.can_mark = has(kCanMark),
            .file_bytes_max = has(kFilesAreSmall) ? small : kLargeFileBytesMax,
            .open_sibling = [](const std::string& name) -> Result<std::unique_ptr<Medium>> {
              return Status::failure(ENOENT, "there is no " + name);
            }};
  }
};

Scene scene_of(document::Bytes bytes) {
  Scene scene;
  const auto number = [&](std::size_t at, std::size_t count) {
    return document::number_at(bytes, at, count);
  };
  scene.flags = static_cast<unsigned>(number(0, 1));
  scene.failing_change = static_cast<unsigned>(number(1, 1));
  test::Random random(static_cast<test::Random::result_type>(number(4, 1)));
  scene.disk.base.write(0, test::random_bytes(random, number(2, 2)));
  if (!scene.has(kNoJournal)) {
    const document::Bytes journal = bytes.subspan(kPrologueBytes);
    scene.journal.assign(journal.begin(), journal.end());
    scene.disk.journal = content_of(scene.journal);
  }
  if (scene.has(kMarked) && scene.has(kCanMark)) {
    Mark mark{document::read(scene.journal).id, "/memory/file.pawl"};
    if (scene.has(kMarkIsAnothers)) mark.journal_id[7] ^= std::byte{1};
    scene.disk.mark = mark;
  }
  return scene;
}

// What the document says of it.
struct Verdict {
  bool ambiguous = false;
  bool refused = false;
  std::uint64_t records = 0;
  test::Content base;
};

Verdict verdict_on(const Scene& scene, bool accept_loss) {
  Verdict verdict;
  verdict.base = scene.disk.base;
  if (!scene.disk.journal.has_value()) {
    verdict.refused = scene.disk.mark.has_value() && !accept_loss;
    return verdict;
  }
  const document::Journal journal = document::read(scene.journal, accept_loss);
  verdict.ambiguous = journal.ambiguous;
  verdict.refused = true;
  if (journal.state != document::Journal::State::readable) return verdict;
  if (scene.disk.mark.has_value()) {
    if (scene.disk.mark->journal_id != journal.id) return verdict;
  } else if (journal.whose == document::Whose::file) {
    // The file's inode and birth time, as a disk in memory has them.
    const bool is_of_file = journal.inode == 1 && journal.birth_time_ns == 1;
    const bool has_commits = !journal.records.empty() || journal.commits_are_lost;
    const bool is_believed = scene.has(kCanMark) && has_commits ? is_of_file && accept_loss
                             : scene.has(kCanMark)              ? is_of_file || journal.inode == 0
                                                                : is_of_file || !has_commits;
    if (!is_believed) return verdict;
  }
  if (journal.commits_are_lost && !accept_loss) return verdict;
  // The other files of a group are nowhere: a file has its commits from the group's journal, and a
  // group is recovered when all that it lists are.  Without its mark the file is refused as well.
  const bool is_member = journal.whose == document::Whose::member;
  const bool needs_others = is_member || !journal.listed.empty();
  if (needs_others && !accept_loss) return verdict;
  verdict.refused = false;
  if (is_member) return verdict;
  verdict.records = journal.records.size();
  if (journal.whose == document::Whose::group) return verdict;
  document::apply(journal, scene.journal, verdict.base);
  return verdict;
}

bool same(const test::Content& left, const test::Content& right) {
  return !left.first_difference(right).has_value();
}
bool same(const std::optional<Mark>& left, const std::optional<Mark>& right) {
  return left.has_value() == right.has_value() &&
         (!left.has_value() ||
          (left->journal_id == right->journal_id && left->journal_path == right->journal_path));
}

// A disk whose file refuses one change, and which knows what was not flushed.
class Disk {
 public:
  Disk(const test::StoredDisk& state, const Scene& scene) : disk_(state, scene.options()) {}

  // The n-th change of the file fails, from now on.  0: none does.
  std::unique_ptr<Medium> open(unsigned failing_change) {
    auto watch = std::make_shared<test::Watch>();
    watch->judge_with(
        [this, failing_change](const test::Event& event) { return judge(event, failing_change); });
    changes_ = 0;
    failed_ = false;
    return test::watched_medium(disk_.open(), watch);
  }
  // A mapping changes file and journal in turn: only a recovery empties the journal.
  void goes_on(bool goes_on) { goes_on_ = goes_on; }
  test::StoredDisk state() const { return disk_.state(); }
  bool failed() const { return failed_; }

 private:
  Status judge(const test::Event& event, unsigned failing_change) {
    if (event.act == test::Act::read) return {};
    if (event.which == test::Which::journal && event.act == test::Act::flush) return {};
    if (event.which == test::Which::journal) {
      require(flushed_ || goes_on_, "the file is flushed before its journal is changed");
      return {};
    }
    if (event.act == test::Act::flush) {
      flushed_ = true;
      return {};
    }
    changes_ += 1;
    if (changes_ == failing_change) {
      failed_ = true;
      return Status::failure(ENOSPC, "made up");
    }
    flushed_ = false;
    return {};
  }

  test::MemoryDisk disk_;
  unsigned changes_ = 0;
  bool flushed_ = true;
  bool failed_ = false;
  bool goes_on_ = false;
};

void check_untouched(const test::StoredDisk& before, const test::StoredDisk& after) {
  require(after.journal.has_value() == before.journal.has_value() &&
              (!after.journal.has_value() || same(*after.journal, *before.journal)),
          "what is refused keeps its journal");
  require(same(after.mark, before.mark), "what is refused keeps its mark");
}

// The end of every recovery: the file is what the document says, and only a file.
void check_recovered(const Verdict& verdict, const test::StoredDisk& after) {
  require(same(after.base, verdict.base), [&] {
    return "the file is not what the document says, at byte " +
           std::to_string(*after.base.first_difference(verdict.base));
  });
  require(!after.journal.has_value() && !after.mark.has_value(), "journal and mark are gone");
}

void recover_and_check(const Scene& scene) {
  const bool accept_loss = scene.has(kAcceptLoss);
  const Verdict verdict = verdict_on(scene, accept_loss);
  Disk disk(scene.disk, scene);
  auto recovered = recover(*disk.open(scene.failing_change), accept_loss);
  const test::StoredDisk after = disk.state();
  if (verdict.ambiguous) return;
  if (verdict.refused) {
    require(!recovered.ok(), "what the document refuses is refused");
    require(!recovered.status().text().empty(), "a refusal says why");
    require(same(after.base, scene.disk.base), "what is refused keeps its file");
    return check_untouched(scene.disk, after);
  }
  if (!recovered.ok()) {
    // Only the disk may be in the way; the next recovery completes what this one began.
    const int error_number = recovered.status().error_number();
    require(disk.failed() || (scene.has(kFilesAreSmall) && error_number == ENOSPC),
            [&] { return "what the document accepts is refused: " + recovered.status().text(); });
    check_untouched(scene.disk, after);
    if (!disk.failed()) return;
    recovered = recover(*disk.open(0), accept_loss);
    if (!recovered.ok() && scene.has(kFilesAreSmall)) return;
    require(recovered.ok(), "an interrupted recovery is completed by the next");
  }
  require(recovered.value() == verdict.records, "the records are counted");
  check_recovered(verdict, disk.state());
  const auto again = recover(*disk.open(0), accept_loss);
  require(again.ok() && again.value() == 0, "there is nothing left to recover");
  check_recovered(verdict, disk.state());
}

// What no writer comes to: a header at its bound is read, but nobody can go on from there; and a
// stale record whose generation is half the way round is one of the future after the next header.
bool cannot_go_on(const Scene& scene) {
  constexpr std::uint64_t kNearTheEnd = (std::uint64_t{1} << 62) - (std::uint64_t{1} << 32);
  constexpr std::uint32_t kHalfTheWay = std::uint32_t{1} << 31;
  constexpr std::uint32_t kHeadersOfOneRun = 1000;
  const document::Journal journal = document::read(scene.journal);
  if (journal.generation > kNearTheEnd || journal.tail_sequence > kNearTheEnd) return true;
  for (std::size_t at = document::kRing; at + document::kRecordBytes <= scene.journal.size();
       at += document::kLine) {
    const auto ahead = static_cast<std::uint32_t>(
        document::number_at(scene.journal, at + document::kRecordGeneration, 4) -
        journal.generation);
    if (ahead >= kHalfTheWay && ahead < kHalfTheWay + kHeadersOfOneRun) return true;
  }
  return false;
}

// A mapping opened on what the crash left goes on from there.
void open_and_check(const Scene& scene) {
  if (cannot_go_on(scene)) return;
  const Verdict verdict = verdict_on(scene, false);
  Options options;
  options.journal_size_bytes = kJournalSizeMin;
  options.tracker = TrackerChoice::fault;  // the one that is made quickly; there is no window
  options.resident_bytes_max = std::uint64_t{1} << 30;
  Disk disk(scene.disk, scene);
  disk.goes_on(true);
  auto opened = Mapping::open(disk.open(0), options);
  if (verdict.ambiguous) return;
  if (!opened.ok()) {
    require(verdict.refused || scene.has(kFilesAreSmall) ||
                document::read(scene.journal).whose == document::Whose::group,
            [&] { return "what the document accepts is refused: " + opened.status().text(); });
    return check_untouched(scene.disk, disk.state());
  }
  require(!verdict.refused && document::read(scene.journal).whose != document::Whose::group,
          "what the document refuses is refused");
  Mapping& mapping = *opened.value();
  require(mapping.size() == verdict.base.size(), "the size is what the document says");
  test::Content expected = verdict.base;
  const std::vector<std::byte> text(100, std::byte{'x'});
  for (const std::uint64_t offset : {std::uint64_t{50}, std::uint64_t{4090}}) {
    const Status written = mapping.write(offset, text);
    require(written.ok(), "the file can be written to");
    const Status committed = mapping.commit_all();
    require(committed.ok() || committed.error_number() == ENOSPC, "the file can be committed");
    if (committed.ok()) expected.write(offset, text);
    if (!committed.ok()) break;
  }
  opened.value().reset();  // a crash
  disk.goes_on(false);
  const auto recovered = recover(*disk.open(0));
  require(recovered.ok(), [&] {
    return "what was committed after a recovery can be recovered: " + recovered.status().text();
  });
  check_recovered({.ambiguous = false, .refused = false, .records = 0, .base = expected},
                  disk.state());
}

}  // namespace

std::vector<Seed> seeds() {
  constexpr unsigned kOrdinary = kCanMark | kMarked;
  constexpr std::pair<const char*, unsigned> kScenes[] = {
      {"recover", kOrdinary},
      {"accept_loss", kOrdinary | kAcceptLoss},
      {"open", kOrdinary | kOpen},
      {"no_attributes", 0},
      {"another_mark", kOrdinary | kMarkIsAnothers},
      {"no_journal", kOrdinary | kNoJournal},
  };
  std::vector<Seed> seeds;
  for (const WrittenJournal& journal : written_journals()) {
    for (const auto& [name, flags] : kScenes) {
      Seed seed{journal.name + "." + name, prologue(flags, 0, journal.base.size())};
      seed.bytes.insert(seed.bytes.end(), journal.bytes.begin(), journal.bytes.end());
      seeds.push_back(std::move(seed));
    }
  }
  for (const SideFile& side : side_files_of_groups()) {
    for (const auto& [name, flags] : kScenes) {
      Seed seed{side.name + "." + name, prologue(flags, 0, 0)};
      seed.bytes.insert(seed.bytes.end(), side.bytes.begin(), side.bytes.end());
      seeds.push_back(std::move(seed));
    }
  }
  return seeds;
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  if (size < kPrologueBytes) return 0;
  const Scene scene = scene_of({reinterpret_cast<const std::byte*>(data), size});
  if (scene.has(kOpen))
    open_and_check(scene);
  else
    recover_and_check(scene);
  return 0;
}
