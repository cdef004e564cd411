// Any bytes as the journal of a group of two files: recovery makes of the files what the document
// says, or refuses and leaves everything as it was.  So it does when it comes from one file after
// the other.  A file that does not confirm that it is in the group is never changed.
//
// The input: 8 bytes that set the scene, then the group's journal.

#include <array>
#include <cerrno>

#include "fuzz/byte_file.h"
#include "fuzz/format_by_document.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "fuzz/written_journal.h"
#include "journal/group_files.h"
#include "mapping/mapping.h"
#include "support/memory_medium.h"
#include "workload/random.h"

namespace pawl::fuzz {

const std::size_t kPrologueBytes = 8;

namespace {

enum Flag : unsigned {
  kAcceptLoss = 1,
  kFromFiles = 2,  // each file is recovered, and then the group
  kFirstIsUnmarked = 4,
  kThirdIsUnmarked = 8,
  kThirdHasLeft = 16,  // by its side file
  kThirdIsNowhere = 32,
  kNumbersAreSwapped = 64,
  kMarksAreAnothers = 128,
};

// The file of the group, its members, and one that is none.
enum Place : std::size_t { kGroup, kFirst, kThird, kOther, kPlaces };
constexpr std::array<const char*, kPlaces> kNames = {"group", "first", "d/3", "other"};
constexpr std::array<std::uint64_t, kPlaces> kNumbers = {0, 1, 3, 0};
// Of larger ones a MemoryDisk would look at every page of what is cut off.
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 28;
constexpr FileIdentity kIdentity{.inode = 1, .birth_time_ns = 1};  // of a MemoryDisk's file

std::vector<std::byte> side_file(const JournalId& id, std::uint64_t number, bool has_left) {
  std::vector<std::byte> bytes;
  auto side = journal::MemberSide::make(std::make_unique<ByteFile>(bytes, journal::kAreaStart), id,
                                        kIdentity, {number, kIdentity, "../group"});
  require(side.ok() && side.value().enter().ok(), "a side file in memory");
  if (has_left) require(side.value().leave().ok(), "a side file in memory");
  return bytes;
}

class World {
 public:
  World(unsigned flags, const std::vector<std::byte>& journal, const document::Journal& read,
        std::span<const test::Content> bases)
      : flags_(flags) {
    Mark mark{read.id, "/memory/group.pawl"};
    if (has(kMarksAreAnothers)) mark.journal_id[3] ^= std::byte{1};
    for (std::size_t place = 0; place < kPlaces; ++place) {
      test::StoredDisk& disk = before_[place];
      disk.base = bases[place];
      if (place == kGroup) disk.journal = content_of(journal);
      if (place == kFirst || place == kThird) {
        const bool is_unmarked = has(place == kFirst ? kFirstIsUnmarked : kThirdIsUnmarked);
        if (!is_unmarked) disk.mark = mark;
        const std::size_t named = has(kNumbersAreSwapped) ? kFirst + kThird - place : place;
        disk.journal =
            content_of(side_file(read.id, kNumbers[named], place == kThird && has(kThirdHasLeft)));
      }
      if (place == kOther) disk.mark = mark;
      disks_[place] = std::make_unique<test::MemoryDisk>(
          disk, test::MemoryDiskOptions{
                    .file_bytes_max = kFileBytesMax,
                    .name = kNames[place],
                    .open_sibling = [this](const std::string& name) { return open(name); }});
    }
    before_[kGroup].mark = disks_[kGroup]->state().mark;
  }

  bool has(Flag flag) const { return (flags_ & flag) != 0; }
  Result<std::uint64_t> recover(Place place) {
    return pawl::recover(*disks_[place]->open(), has(kAcceptLoss));
  }
  const test::StoredDisk& before(std::size_t place) const { return before_[place]; }
  test::StoredDisk after(std::size_t place) const { return disks_[place]->state(); }

  // Of a file that says by mark and side file that it is in the group, under its number.
  bool confirms(std::size_t place) const {
    if (has(kMarksAreAnothers) || has(kNumbersAreSwapped)) return false;
    if (place == kFirst) return !has(kFirstIsUnmarked);
    return place == kThird && !has(kThirdIsUnmarked) && !has(kThirdHasLeft) &&
           !has(kThirdIsNowhere);
  }

 private:
  Result<std::unique_ptr<Medium>> open(const std::string& name) {
    for (std::size_t place = 0; place < kPlaces; ++place) {
      const bool is_there = place != kThird || !has(kThirdIsNowhere);
      if (is_there && (name == kNames[place] || name == std::string("../") + kNames[place]))
        return disks_[place]->open();
    }
    return Status::failure(ENOENT, "there is no " + name);
  }

  const unsigned flags_;
  std::array<test::StoredDisk, kPlaces> before_;
  std::array<std::unique_ptr<test::MemoryDisk>, kPlaces> disks_;
};

bool same(const test::Content& left, const test::Content& right) {
  return !left.first_difference(right).has_value();
}

void check_unchanged(const World& world, std::size_t place) {
  const test::StoredDisk before = world.before(place);
  const test::StoredDisk after = world.after(place);
  const std::string name = kNames[place];
  require(same(before.base, after.base), [&] { return "the file " + name + " was changed"; });
  require(before.mark.has_value() == after.mark.has_value(),
          [&] { return "the mark of " + name + " was changed"; });
  require(before.journal.has_value() == after.journal.has_value() &&
              (!after.journal.has_value() || same(*before.journal, *after.journal)),
          [&] { return "the side file of " + name + " was changed"; });
}

test::Content by_document(const document::Journal& read, document::Bytes journal,
                          const test::Content& base, std::size_t place) {
  test::Content file = base;
  document::apply(read, journal, file, ~std::size_t{0}, kNumbers[place]);
  return file;
}

void check_files(const World& world, const document::Journal& read, document::Bytes journal) {
  // By the inode that a mark names it would be known, and those of a MemoryDisk name none.
  if (world.has(kNumbersAreSwapped) && world.has(kFromFiles)) return;
  for (const Place place : {kFirst, kThird}) {
    const test::Content& before = world.before(place).base;
    const test::Content after = world.after(place).base;
    const bool is_listed =
        std::any_of(read.listed.begin(), read.listed.end(),
                    [&](const document::Listed& one) { return one.number == kNumbers[place]; });
    const bool is_changed = !same(before, after);
    require(!is_changed || (world.confirms(place) && is_listed) || world.has(kAcceptLoss),
            "a file that did not confirm that it is in the group was changed");
    if (!is_changed && (!world.confirms(place) || !is_listed)) continue;
    if (world.has(kAcceptLoss)) continue;
    const test::Content expected = by_document(read, journal, before, place);
    require(same(after, expected), [&] {
      return std::string(kNames[place]) + " is not what the document says, at byte " +
             std::to_string(*after.first_difference(expected));
    });
  }
}

std::vector<std::byte> prologue(unsigned flags) {
  std::vector<std::byte> bytes(kPrologueBytes);
  bytes[0] = static_cast<std::byte>(flags);
  document::put_number(bytes, 2, 2, 5000);
  document::put_number(bytes, 4, 2, 9000);
  return bytes;
}

}  // namespace

std::vector<Seed> seeds() {
  constexpr std::pair<const char*, unsigned> kScenes[] = {
      {"group", 0u},
      {"files", kFromFiles},
      {"accept_loss", kAcceptLoss},
      {"first_unmarked", kFirstIsUnmarked},
      {"third_unmarked", kThirdIsUnmarked | kAcceptLoss},
      {"left", kThirdHasLeft},
      {"nowhere", kThirdIsNowhere},
      {"nowhere_from_files", kThirdIsNowhere | kFromFiles},
      {"swapped", kNumbersAreSwapped},
      {"anothers", kMarksAreAnothers},
  };
  std::vector<Seed> seeds;
  for (const SideFile& side : side_files_of_groups()) {
    for (const auto& [name, flags] : kScenes) {
      Seed seed{side.name + "." + name, prologue(flags)};
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
  const document::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  const document::Bytes given = bytes.subspan(kPrologueBytes);
  const std::vector<std::byte> journal(given.begin(), given.end());
  const document::Journal read = document::read(journal);
  if (read.ambiguous) return 0;
  pawl::test::Random random(data[1]);
  std::array<pawl::test::Content, kPlaces> bases;
  bases[kFirst].write(0, pawl::test::random_bytes(random, document::number_at(bytes, 2, 2)));
  bases[kThird].write(0, pawl::test::random_bytes(random, document::number_at(bytes, 4, 2)));
  bases[kOther].write(0, pawl::test::random_bytes(random, 100));
  World world(data[0], journal, read, bases);

  bool is_recovered = true;
  if (world.has(kFromFiles)) {
    is_recovered = world.recover(kFirst).ok();
    is_recovered = world.recover(kThird).ok() && is_recovered;
  }
  const auto recovered = world.recover(kGroup);
  require(recovered.ok() || !recovered.status().text().empty(), "a refusal says why");
  check_unchanged(world, kOther);
  const bool is_group =
      read.state == document::Journal::State::readable && read.whose == document::Whose::group;
  if (recovered.ok() && !world.has(kAcceptLoss)) {
    require(read.state == document::Journal::State::readable && !read.commits_are_lost,
            "what the document refuses is refused");
    const auto again = world.recover(kGroup);
    require(again.ok() && again.value() == 0, "there is nothing left to recover");
  }
  // For want of space a recovery stops, and is completed by the next.
  const bool is_refused = !recovered.ok() && recovered.status().error_number() != ENOSPC;
  if (is_refused && !world.has(kFromFiles)) {
    for (std::size_t place = 0; place < kPlaces; ++place) check_unchanged(world, place);
  }
  if (is_group && recovered.ok() && is_recovered) check_files(world, read, journal);
  return 0;
}
