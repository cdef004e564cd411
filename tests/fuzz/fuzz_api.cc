// A program in a few bytes: calls of the API, right and wrong ones, stores in between, and crashes,
// against a model of what the file must be.
//
// The input: 8 bytes of setting, then 8 bytes a call: which, and what with.  With PAWL_FUZZ_TELL in
// the environment each call is told before it is made.

#include <sys/mman.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/call.h"
#include "fuzz/face.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "mapping/mapping.h"
#include "mapping/statistics.h"
#include "track/kernel_stores.h"
#include "track/tracker.h"
#include "workload/file_model.h"
#include "workload/random.h"

namespace pawl::fuzz {

const std::size_t kPrologueBytes = 8;

namespace {

using test::FileModel;

constexpr std::size_t kCallsMax = 120;
constexpr unsigned kCallKinds = 24;
constexpr unsigned kReadEvery = 4;
constexpr std::uint64_t kFileBytesMax = 96 << 10;
constexpr std::uint64_t kWindowPagesMax = 32;
constexpr std::uint64_t kEveryPage = std::uint64_t{1} << 50;

void succeed(const Status& status, const char* what) {
  require(status.ok(), [&] { return std::string(what) + " succeeds: " + status.text(); });
}

Content initial_content(unsigned seed, std::uint64_t size) {
  test::Random random(seed);
  Content content;
  content.write(0, test::random_bytes(random, size));
  return content;
}

// What a setting's bytes mean.
struct Setting {
  explicit Setting(const std::uint8_t* bytes)
      : uses_c(bytes[0] % 4 == 3),
        can_mark((bytes[0] & 4) == 0),
        bits(bytes[1]),
        initial_bytes((bytes[2] | bytes[3] << 8) % kFileBytesMax),
        window{bytes[4] % 4u, 1 + bytes[5] % kWindowPagesMax},
        seed(bytes[6]) {}

  // Each opening may have other ones.
  Options options(unsigned change) const {
    static const bool can_scan = probe_trackers().scan;
    const unsigned choice = bits ^ change;
    Options options;
    options.tracker = (choice & 1) != 0 && can_scan ? TrackerChoice::scan : TrackerChoice::fault;
    options.apply = (choice & 2) != 0 ? ApplyChoice::eager : ApplyChoice::async;
    options.journal_size_bytes = (choice & 4) != 0 ? kJournalSizeMin : 4 * kJournalSizeMin;
    constexpr std::array<std::uint32_t, 4> kThresholds{1, 2, 8, 128};
    options.apply_threshold_pages = kThresholds[choice >> 3 & 3];
    options.resident_bytes_max = (choice & 32) != 0 ? 4 * kPageBytes : std::uint64_t{1} << 30;
    return options;
  }

  bool uses_c;
  bool can_mark;
  unsigned bits;
  std::uint64_t initial_bytes;
  PageRun window;
  unsigned seed;
};

class Program {
 public:
  explicit Program(const Setting& setting)
      : setting_(setting),
        random_(setting.seed),
        window_(setting.window),
        model_(initial_content(setting.seed, setting.initial_bytes), window_.count),
        possible_{model_.committed()} {
    if (setting.uses_c)
      face_ = c_face(model_.now());
    else
      face_ = mapping_face(model_.now(), setting.can_mark);
    open(0);
  }

  void run(const Call& call) {
    switch (call.kind % kCallKinds) {
      case 0:
      case 1:
      case 2:
      case 3:
        store(call);
        break;
      case 4:
        store_past_the_end(call);
        break;
      case 5:
      case 6:
        commit(pages_of(call));
        break;
      case 7:
        commit(window_);
        break;
      case 8:
      case 9:
        queue(call.a % 2 == 0 ? window_ : pages_of(call));
        break;
      case 10:
        wait();
        break;
      case 11:
        roll_back(call.a % 3 == 0 ? window_ : pages_of(call));
        break;
      case 12:
      case 13:
        truncate(call.c % kFileBytesMax);
        break;
      case 14:
        crash(call);
        break;
      case 15:
        close(call);
        break;
      case 16:
        face_->call_wrongly(call);
        break;
      case 17:
        there_and_back(call);
        break;
      default:
        if (face_->has_all_calls()) run_on_mapping(call);
    }
    check();
  }

  void end() {
    succeed(face_->close(), "the last close");
    require(face_->is_just_a_file(), "after a close there is only the file");
    must_be(face_->file(), model_.committed(), "after the last close");
  }

 private:
  // ---- calls that every face has

  void store(const Call& call) {
    if (!mapped_ || model_.size() == 0) return;
    const std::uint64_t offset = (call.c & 0xFFFFFF) % model_.size();
    std::uint64_t length = 1 + (call.a % 8 == 0 ? call.b % 9000 : call.b % 200);
    length = std::min(length, model_.size() - offset);
    // As far as the window reaches, and may be written.
    std::uint64_t end = offset;
    while (end < offset + length && can_store(end / kPageBytes))
      end = (end / kPageBytes + 1) * kPageBytes;
    end = std::min(end, offset + length);
    if (end == offset) return;
    const auto bytes = test::random_bytes(random_, end - offset);
    std::memcpy(at(offset), bytes.data(), bytes.size());
    model_.write(offset, bytes);
  }

  // In the page in which the file ends, behind its end: it is nobody's.
  void store_past_the_end(const Call& call) {
    const std::uint64_t end = model_.size();
    if (!mapped_ || end % kPageBytes == 0 || !can_store(end / kPageBytes)) return;
    std::memset(at(end), static_cast<int>(call.a), kPageBytes - end % kPageBytes);
  }

  void commit(const PageRun& pages) {
    if (!mapped_) return;
    const Content after = model_.after_commit(pages);
    succeed(face_->commit(at(pages.first * kPageBytes), pages.count * kPageBytes), "a commit");
    model_.commit(after);
    possible_ = {model_.committed()};
  }

  void queue(const PageRun& pages) {
    if (!mapped_) return;
    const Content after = model_.after_commit(pages);
    succeed(face_->queue(at(pages.first * kPageBytes), pages.count * kPageBytes),
            "a queued commit");
    model_.commit(after);
    possible_.push_back(model_.committed());
  }

  void wait() {
    // The C functions find a mapping by its window.
    succeed(face_->wait(), "a wait");
    possible_ = {model_.committed()};
  }

  void roll_back(const PageRun& pages) {
    if (!mapped_) return;
    succeed(face_->roll_back(at(pages.first * kPageBytes), pages.count * kPageBytes), "a rollback");
    if (pages == window_)
      model_.roll_back();
    else
      model_.roll_back(pages);
    possible_ = {model_.committed()};
  }

  void truncate(std::uint64_t size_bytes) {
    succeed(face_->truncate(size_bytes), "a truncation");
    model_.truncate(size_bytes);
  }

  void crash(const Call& call) {
    face_->crash();
    if (call.a % 2 == 0) succeed(face_->recover(), "a recovery");
    open(call.b);
  }

  void close(const Call& call) {
    const bool discards = face_->mapping() == nullptr;
    require(!discards, "the mapping is open");
    succeed(face_->close(), "a close");
    require(face_->is_just_a_file(), "after a close there is only the file");
    possible_ = {model_.committed()};
    must_be(face_->file(), model_.committed(), "after a close");
    for (unsigned i = 0; i < call.a % 4; ++i)
      face_->call_wrongly({call.kind, call.b + i, 0, call.c});
    open(call.b >> 8);
  }

  // To another content and back, with a commit each: the second must not be taken for nothing.
  void there_and_back(const Call& call) {
    if (!mapped_ || model_.size() == 0) return;
    const std::uint64_t page = (call.c % model_.size()) / kPageBytes;
    const std::uint64_t start = page * kPageBytes;
    if (!can_store(page)) return;
    std::vector<std::byte> before(std::min<std::uint64_t>(100, model_.size() - start));
    model_.now().read(start, before);
    const auto other = test::random_bytes(random_, before.size());
    for (const auto& bytes : {other, before}) {
      std::memcpy(at(start), bytes.data(), bytes.size());
      model_.write(start, bytes);
      if (call.a % 2 == 0)
        commit({page, 1});
      else
        queue({page, 1});
    }
  }

  // ---- calls that only a Mapping has

  void run_on_mapping(const Call& call) {
    Mapping& mapping = *face_->mapping();
    switch (call.kind % kCallKinds) {
      case 18: {
        const std::uint64_t offset = (call.c & 0xFFFFFF) % kFileBytesMax;
        const std::uint64_t length =
            std::min<std::uint64_t>(call.b % 10000, kFileBytesMax - offset);
        const auto bytes = test::random_bytes(random_, length);
        // A write that grows the file cuts nothing.
        if (length > 0 && offset + length > model_.size()) model_.truncate(offset + length);
        succeed(mapping.write(offset, bytes), "a write");
        if (length > 0) model_.write(offset, bytes);
        return;
      }
      case 19: {
        const Content after = model_.after_commit({0, kEveryPage});
        succeed(mapping.commit_all(), "a commit of everything");
        model_.commit(after);
        possible_ = {model_.committed()};
        return;
      }
      case 20: {
        const std::uint64_t offset = call.c % kFileBytesMax;
        const std::uint64_t length =
            1 + call.b % std::min<std::uint64_t>(20000, kFileBytesMax - offset);
        succeed(mapping.allocate(offset, length), "an allocation");
        if (offset + length > model_.size()) model_.truncate(offset + length);
        return;
      }
      case 21:
        return change_window(mapping, call);
      case 22:
        return protect(mapping, call);
      default: {
        const bool changed = model_.now().first_difference(model_.committed()).has_value();
        require(mapping.has_pending_changes() || !changed, "pending changes are known");
        MappingStatistics statistics;
        mapping.statistics(statistics);
        require(statistics.last_error_number == 0, "nothing has failed");
      }
    }
  }

  void change_window(Mapping& mapping, const Call& call) {
    const PageRun wanted{call.b % 8u, 1 + call.c % kWindowPagesMax};
    if (!mapped_) {
      succeed(mapping
                  .map_window(nullptr, wanted.count * kPageBytes, PROT_READ | PROT_WRITE, 0,
                              wanted.first * kPageBytes)
                  .status(),
              "a new window");
      return show(wanted);
    }
    switch (call.a % 4) {
      case 0:
        succeed(mapping.unmap_window(true), "an unmapping");
        return show_nothing();
      case 1:
        model_.roll_back(window_);
        succeed(mapping.unmap_window(false), "an unmapping that discards");
        return show_nothing();
      default: {
        memory::LeftPlace left;
        const auto moved = mapping.remap_window(wanted.count * kPageBytes, true, nullptr, left);
        if (!has_one_protection()) {
          require(moved.status().error_number() == EFAULT, "several mappings are not remapped");
          return;
        }
        succeed(moved.status(), "a remapping");
        const bool same_length = wanted.count == window_.count;
        const auto parts = readable_;
        show({window_.first, wanted.count});
        // Nothing was done: parts with a protection of their own keep it.
        if (same_length) readable_ = parts;
      }
    }
  }

  // Only for reading, or not at all, or as before.
  void protect(Mapping& mapping, const Call& call) {
    if (!mapped_) return;
    constexpr std::array<int, 3> kProtections{PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE};
    const int protection = kProtections[call.a % kProtections.size()];
    const PageRun pages = pages_of(call);
    succeed(
        mapping.protect_window(at(pages.first * kPageBytes), pages.count * kPageBytes, protection),
        "a protection");
    for (std::uint64_t page = pages.first; page < pages.end(); ++page)
      readable_[page - window_.first] = protection;
    if (has_one_protection()) whole_ = protection;
  }

  bool has_one_protection() const {
    return std::all_of(readable_.begin(), readable_.end(),
                       [this](int one) { return one == readable_.front(); });
  }

  // ---- what is seen

  bool in_window(std::uint64_t page) const {
    return mapped_ && page >= window_.first && page < window_.end();
  }
  bool can_store(std::uint64_t page) const {
    return in_window(page) && (readable_[page - window_.first] & PROT_WRITE) != 0;
  }
  bool can_load(std::uint64_t page) const {
    return in_window(page) && readable_[page - window_.first] != PROT_NONE;
  }
  char* at(std::uint64_t offset) const { return address_ + (offset - window_.first * kPageBytes); }

  // Some of the window's pages, seldom none.
  PageRun pages_of(const Call& call) const {
    const std::uint64_t first = call.b % window_.count;
    const std::uint64_t count = call.a == 255 ? 0 : 1 + (call.b >> 8) % (window_.count - first);
    return {window_.first + first, count};
  }

  void open(unsigned change) {
    whole_ = PROT_READ | PROT_WRITE;
    succeed(face_->open(setting_.options(change), setting_.window), "an opening");
    // The file itself is the committed image now, whatever waited for its way into it.
    const Content found = face_->file();
    const auto matches = std::find_if(
        possible_.begin(), possible_.end(),
        [&](const Content& state) { return !state.first_difference(found).has_value(); });
    if (matches == possible_.end()) must_be(found, possible_.back(), "after a crash");
    model_.restart(found);
    possible_ = {found};
    show(setting_.window);
  }
  void show(const PageRun& window) {
    mapped_ = true;
    window_ = window;
    address_ = face_->mapping()->window()->address;
    readable_.assign(window.count, whole_);
    model_.show(window);
  }
  void show_nothing() {
    mapped_ = false;
    whole_ = PROT_READ | PROT_WRITE;
    model_.show({0, 0});
  }

  static void must_be(const Content& found, const Content& expected, const char* when) {
    const auto difference = found.first_difference(expected);
    require(!difference.has_value(), [&] {
      return std::string(when) + ": the file of " + std::to_string(found.size()) +
             " bytes differs at byte " + std::to_string(*difference) +
             " from what it must be, of " + std::to_string(expected.size());
    });
  }

  // The program sees what it did.
  void check() {
    Mapping& mapping = *face_->mapping();
    const std::uint64_t size = model_.size();
    require(mapping.size() == size, "the size is what the program made it");
    // The same memory each time: to get it costs more than to fill it.
    static std::array<std::byte, kFileBytesMax + 1> expected;
    static std::array<std::byte, kFileBytesMax + 1> seen;
    model_.now().read(0, std::span(expected).first(size));
    checks_ += 1;
    if (checks_ % kReadEvery == 0) {
      const auto count = mapping.read(0, seen);
      succeed(count.status(), "a read");
      require(count.value() == size, "a read ends where the file does");
      require(std::memcmp(seen.data(), expected.data(), size) == 0, "read() sees the file");
    }
    if (!mapped_) return;
    for (std::uint64_t page = window_.first; page < window_.end(); ++page) {
      const std::uint64_t start = page * kPageBytes;
      if (start >= size) break;
      if (!can_load(page)) continue;
      const std::uint64_t length = std::min<std::uint64_t>(kPageBytes, size - start);
      require(std::memcmp(at(start), expected.data() + start, length) == 0,
              [&] { return "the window shows the file, page " + std::to_string(page); });
    }
  }

  const Setting setting_;
  test::Random random_;
  PageRun window_;
  FileModel model_;
  std::vector<Content> possible_;  // after a crash now: the last that is known to be durable, ...
  std::unique_ptr<Face> face_;
  bool mapped_ = false;
  char* address_ = nullptr;
  unsigned checks_ = 0;
  std::vector<int> readable_;  // each page of the window's protection
  int whole_ = PROT_READ | PROT_WRITE;
};

Call call_of(const std::uint8_t* bytes) {
  return {.kind = bytes[0],
          .a = bytes[1],
          .b = static_cast<unsigned>(bytes[2] | bytes[3] << 8),
          .c = static_cast<unsigned>(bytes[4]) | static_cast<unsigned>(bytes[5]) << 8 |
               static_cast<unsigned>(bytes[6]) << 16 | static_cast<unsigned>(bytes[7]) << 24};
}

}  // namespace

// Programs that chance writes.
std::vector<Seed> seeds() {
  constexpr unsigned kSeeds = 48;
  constexpr std::size_t kCalls = 40;
  std::vector<Seed> seeds;
  for (unsigned i = 0; i < kSeeds; ++i) {
    test::Random random(i);
    Seed seed{"program" + std::to_string(i),
              test::random_bytes(random, kPrologueBytes + kCalls * kCallBytes)};
    seed.bytes[0] = static_cast<std::byte>(i);
    seed.bytes[1] = static_cast<std::byte>(i / 4);
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  if (size < kPrologueBytes) return 0;
  // Under a sanitizer the archive's wrappers are left out unless asked for.
  pawl::link_kernel_stores_io();
  pawl::link_kernel_stores_other();
  Program program{Setting(data)};
  std::size_t calls = 0;
  const bool tells = std::getenv("PAWL_FUZZ_TELL") != nullptr;
  for (std::size_t at = kPrologueBytes; at + kCallBytes <= size && calls < kCallsMax;
       at += kCallBytes, ++calls) {
    const Call call = call_of(data + at);
    if (tells) {
      std::fprintf(stderr, "call %zu: kind %u, %u, %u, %u\n", calls, call.kind % kCallKinds, call.a,
                   call.b, call.c);
    }
    program.run(call);
  }
  program.end();
  return 0;
}
