// pawl heap check and pawl heap info, over every state that a heap's file can be in.  Whatever they
// find, they change nothing.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "heap/format.h"
#include "heap/sealed.h"
#include "pawl/heap.h"
#include "support/temporary_directory.h"

namespace pawl::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::uint64_t kSegment1 = heap_format::kSegmentBytes;
constexpr std::uint64_t kSlab = kSegment1 + kPageBytes;  // the first that is made
constexpr int kSmallBlocks = 10;
constexpr std::uint64_t kSizeMax = 32 << 20;

json parse(const std::string& text) {
  json parsed = json::parse(text, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << text;
  return parsed;
}

pawl_heap* open_or_die(const std::string& path) {
  pawl_heap_options options;
  if (pawl_heap_options_init(&options) != 0) ::_exit(70);
  options.size_bytes_max = kSizeMax;
  options.layout = "of a test";
  options.mapping.journal_size_bytes = 1 << 20;
  options.mapping.apply_threshold_pages = 1 << 20;  // what is synced stays in the journal
  pawl_heap* const heap = pawl_heap_open(path.c_str(), &options);
  if (heap == nullptr) {
    std::fprintf(stderr, "%s\n", pawl_last_error());
    ::_exit(71);
  }
  return heap;
}

// Small blocks, pages of their own, segments of their own, and roots.
void fill_or_die(pawl_heap* heap) {
  void* small = nullptr;
  for (int i = 0; i < kSmallBlocks; ++i) small = pawl_heap_malloc(heap, 100);
  void* const large = pawl_heap_malloc(heap, 100'000);
  void* const huge = pawl_heap_malloc(heap, 5 << 20);
  if (small == nullptr || large == nullptr || huge == nullptr ||
      pawl_heap_set_root(heap, small) != 0 ||
      pawl_heap_set_named_root(heap, "large", large, 7) != 0 ||
      pawl_heap_set_named_root(heap, "not UTF-8: \xff", huge, 8) != 0 || pawl_heap_sync(heap) != 0)
    ::_exit(72);
}

class HeapVerbs : public testing::Test {
 protected:
  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "a.heap";
  const std::string journal_ = file_ + ".pawl";

  // In a process of its own, which then leaves without closing anything.
  void in_child(const std::function<void()>& act) {
    const pid_t child = ::fork();
    if (child == 0) {
      act();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  void make_sound() {
    in_child([&] {
      pawl_heap* const heap = open_or_die(file_);
      fill_or_die(heap);
      if (pawl_heap_close(heap) != 0) ::_exit(73);
    });
    ASSERT_FALSE(fs::exists(journal_));
  }
  void leave_by_crash() {
    in_child([&] { fill_or_die(open_or_die(file_)); });
    ASSERT_TRUE(fs::exists(journal_));
  }

  // All that could be changed, of all that is there.
  struct State {
    std::string content;
    std::string mark;
    timespec changed;
    bool operator==(const State& other) const {
      return content == other.content && mark == other.mark &&
             std::memcmp(&changed, &other.changed, sizeof changed) == 0;
    }
  };
  std::map<std::string, State> states() const {
    std::map<std::string, State> all;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_.path())) {
      const std::string path = entry.path().string();
      struct stat status{};
      EXPECT_EQ(::stat(path.c_str(), &status), 0);
      char mark[4096];
      const ssize_t length = ::getxattr(path.c_str(), "user.pawl", mark, sizeof mark);
      all[path] = {entry.is_regular_file() ? read_file(path) : "",
                   std::string(mark, static_cast<std::size_t>(std::max<ssize_t>(length, 0))),
                   status.st_ctim};
    }
    return all;
  }
  Answer heap(const std::string& verb, bool as_json = false) const {
    const auto before = states();
    std::vector<std::string> arguments{"heap", verb, file_};
    if (as_json) arguments.emplace_back("--json");
    const Answer answer = pawl(arguments);
    EXPECT_TRUE(states() == before) << "pawl heap " << verb << " changed something";
    return answer;
  }

  void expect_sound(const std::string& state) {
    const Answer check = heap("check");
    EXPECT_EQ(check.code, 0) << check.err;
    EXPECT_EQ(check.out, file_ + ": no faults\n");
    EXPECT_EQ(check.err, "");
    const Answer as_json = heap("check", true);
    EXPECT_EQ(as_json.code, 0) << as_json.err;
    EXPECT_EQ(parse(as_json.out),
              json({{"file", file_}, {"state", state}, {"faults", 0}, {"told", json::array()}}));
  }
  // Neither verb finds a heap to look at.
  void expect_no_answer(int code, const std::string& word) {
    for (const char* verb : {"check", "info"}) {
      for (const bool as_json : {false, true}) {
        const Answer answer = heap(verb, as_json);
        EXPECT_EQ(answer.code, code) << answer.err;
        EXPECT_EQ(answer.out, "");
        EXPECT_THAT(answer.err, HasSubstr("pawl heap " + std::string(verb) + ": "));
        EXPECT_THAT(answer.err, HasSubstr(word));
      }
    }
  }
  // The heap can be looked at; this is what is wrong.
  void expect_damaged(const std::string& word) {
    const Answer check = heap("check");
    EXPECT_EQ(check.code, 10) << check.err;
    EXPECT_THAT(check.out, HasSubstr(word));
    EXPECT_THAT(check.out, HasSubstr(" fault"));
    const Answer as_json = heap("check", true);
    EXPECT_EQ(as_json.code, 10) << as_json.err;
    const json parsed = parse(as_json.out);
    EXPECT_GT(parsed["faults"], 0);
    EXPECT_THAT(parsed["told"].dump(), HasSubstr(word));
  }
  void expect_uncountable() {
    const Answer info = heap("info");
    EXPECT_EQ(info.code, 10);
    EXPECT_EQ(info.out, "");
    EXPECT_THAT(info.err, HasSubstr("'pawl heap check " + file_ + "' says more"));
  }

  void flip(const std::string& path, std::uint64_t offset) const {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    char byte = 0;
    ASSERT_EQ(::pread(descriptor, &byte, 1, static_cast<off_t>(offset)), 1);
    byte = static_cast<char>(byte ^ 0x41);
    ASSERT_EQ(::pwrite(descriptor, &byte, 1, static_cast<off_t>(offset)), 1);
    ::close(descriptor);
  }
  // Changes the identity, and seals it.
  void change_identity(const std::function<void(heap_format::Identity&)>& change) const {
    heap_format::Identity identity;
    const int descriptor = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::pread(descriptor, &identity, sizeof identity, 0), ssize_t{sizeof identity});
    change(identity);
    seal(identity);
    ASSERT_EQ(::pwrite(descriptor, &identity, sizeof identity, 0), ssize_t{sizeof identity});
    ::close(descriptor);
  }
};

TEST_F(HeapVerbs, ASoundHeapHasNoFaults) {
  make_sound();
  expect_sound("clean");
}

TEST_F(HeapVerbs, InfoCountsAsTheLibraryDoes) {
  make_sound();
  const json told = parse(heap("info", true).out);
  pawl_heap* const opened = open_or_die(file_);
  pawl_heap_information counted;
  ASSERT_EQ(pawl_heap_info(opened, &counted), 0);
  EXPECT_EQ(told["file"], file_);
  EXPECT_EQ(told["state"], "clean");
  EXPECT_EQ(told["version"], heap_format::kVersion);
  EXPECT_EQ(told["machine"], std::string(counted.machine));
  EXPECT_EQ(told["layout"], "of a test");
  EXPECT_EQ(told["address"], counted.address);
  EXPECT_EQ(told["size_bytes"], counted.size_bytes);
  EXPECT_EQ(told["size_bytes_max"], kSizeMax);
  EXPECT_EQ(told["blocks_used"], kSmallBlocks + 2);
  EXPECT_EQ(told["blocks_used"], counted.blocks_used);
  EXPECT_EQ(told["bytes_used"], counted.bytes_used);
  EXPECT_EQ(told["bytes_free"], counted.bytes_free);
  EXPECT_EQ(told["bytes_overhead"], counted.bytes_overhead);
  EXPECT_EQ(told["free_block_bytes_max"], counted.free_block_bytes_max);
  EXPECT_EQ(told["large_blocks_used"], 2);
  EXPECT_EQ(told["large_bytes_used"], counted.large_bytes_used);
  EXPECT_GE(told["fragmentation_percent"], 0.0);
  EXPECT_LE(told["fragmentation_percent"], 100.0);
  EXPECT_EQ(told["root"], reinterpret_cast<std::uintptr_t>(pawl_heap_root(opened)));
  const std::string large = "large";
  ASSERT_EQ(told["named_roots"].size(), 2u);
  for (const json& root : told["named_roots"]) {
    if (root["name"] != large) continue;
    EXPECT_EQ(root["type_tag"], 7);
    EXPECT_EQ(root["address"], reinterpret_cast<std::uintptr_t>(
                                   pawl_heap_named_root(opened, large.c_str(), nullptr)));
  }
  ASSERT_EQ(told["size_classes"].size(), 1u);
  const json& of_small = told["size_classes"][0];
  EXPECT_EQ(of_small["block_size_bytes"], 112);
  EXPECT_EQ(of_small["blocks_used"], kSmallBlocks);
  EXPECT_EQ(of_small["blocks_free"], 36 - kSmallBlocks);
  EXPECT_EQ(pawl_heap_close(opened), 0);
}

TEST_F(HeapVerbs, InfoIsReadable) {
  make_sound();
  const Answer info = heap("info");
  EXPECT_EQ(info.code, 0) << info.err;
  for (const char* part :
       {"file          ", "state         clean\n", "format        version 1, ",
        "layout        of a test\n", "address       0x", "may grow to 32.0 MiB", "in 12 blocks",
        "fragmented", "bookkeeping   ", "large blocks  ", "in 2 blocks", "root          0x",
        "root          large at 0x", "block size         used"})
    EXPECT_THAT(info.out, HasSubstr(part));
}

// Whoever made the heap chose these texts; none forges a line of the answer.
TEST_F(HeapVerbs, TextsOfTheHeapStayOnTheirLine) {
  make_sound();
  change_identity([](heap_format::Identity& identity) { identity.layout = {"C\nstate clean"}; });
  const int descriptor = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
  const std::string name =
      "a\n\x1b[2J\xc2\x9b"
      "3Jb";  // ESC [, and the one character that is both
  ASSERT_EQ(::pwrite(descriptor, name.c_str(), name.size() + 1, heap_format::kNamedRootsOffset),
            static_cast<ssize_t>(name.size() + 1));
  ::close(descriptor);
  const Answer info = heap("info");
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("layout        C\\nstate clean\n"));
  EXPECT_THAT(info.out, HasSubstr("root          a\\n\\x1b[2J\\xc2\\x9b3Jb at 0x"));
  EXPECT_EQ(parse(heap("info", true).out)["named_roots"][0]["name"], name);
}

TEST_F(HeapVerbs, AHeapLeftByACrashIsSeenAsRecoveryWouldLeaveIt) {
  leave_by_crash();
  expect_sound("needs-recovery");
  const Answer text = heap("info");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("state         needs-recovery\n"));
  json before = parse(heap("info", true).out);
  EXPECT_EQ(before["blocks_used"], kSmallBlocks + 2);
  ASSERT_EQ(pawl({"recover", file_}).code, 0);
  json after = parse(heap("info", true).out);
  EXPECT_EQ(before["state"], "needs-recovery");
  EXPECT_EQ(after["state"], "clean");
  before.erase("state");
  after.erase("state");
  EXPECT_EQ(before, after);
}

TEST_F(HeapVerbs, AJournalThatIsDamagedOrMissing) {
  leave_by_crash();
  flip(journal_, 2 * kPageBytes + 100);  // in the first record, and not the last
  expect_no_answer(4, "was durable once");
  flip(journal_, 2 * kPageBytes + 100);
  expect_sound("needs-recovery");
  fs::rename(journal_, directory_ / "elsewhere");
  if (pawl({"verify", file_}).code == 0) GTEST_SKIP() << "this file system has no user attributes";
  expect_no_answer(6, "journal");
}

TEST_F(HeapVerbs, AHeapThatIsOpenIsInUse) {
  make_sound();
  pawl_heap* const opened = open_or_die(file_);
  expect_no_answer(7, "process " + std::to_string(::getpid()));
  EXPECT_EQ(pawl_heap_close(opened), 0);
  expect_sound("clean");
}

TEST_F(HeapVerbs, WhatIsNoHeap) {
  expect_no_answer(1, "No such file");
  write_file(file_, "");
  expect_no_answer(1, "no heap");
  write_file(file_, std::string(100, 'a'));
  expect_no_answer(1, "no heap");
  write_file(file_, std::string(8 << 20, 'a'));
  expect_no_answer(1, "no heap");
  fs::remove(file_);
  fs::create_directory(file_);
  expect_no_answer(1, "not a regular file");
}

TEST_F(HeapVerbs, AHeapWithoutABlockIsSound) {
  in_child([&] {
    if (pawl_heap_close(open_or_die(file_)) != 0) ::_exit(73);
  });
  expect_sound("clean");
  const Answer info = heap("info");
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("root          none\n"));
  EXPECT_THAT(info.out, HasSubstr("in 0 blocks"));
  EXPECT_EQ(parse(heap("info", true).out)["named_roots"], json::array());
}

TEST_F(HeapVerbs, ADamagedIdentity) {
  make_sound();
  flip(file_, 45);
  expect_no_answer(10, "does not match its checksum");
  flip(file_, 45);
  change_identity([](heap_format::Identity& identity) { identity.address += kPageBytes; });
  expect_no_answer(10, "cannot be");
}

TEST_F(HeapVerbs, AnotherVersionOrMachine) {
  make_sound();
  change_identity([](heap_format::Identity& identity) { identity.version = 2; });
  expect_no_answer(8, "version 2");
  change_identity([](heap_format::Identity& identity) {
    identity.version = 1;
    identity.machine = {"PDP-11"};
  });
  expect_no_answer(5, "PDP-11");
}

TEST_F(HeapVerbs, AFileThatWasCutOrGrew) {
  make_sound();
  const std::uint64_t size = fs::file_size(file_);
  fs::resize_file(file_, size - 1);
  expect_no_answer(10, "Was it cut?");
  fs::resize_file(file_, kSegment1);
  expect_no_answer(10, "Was it cut?");
  fs::resize_file(file_, kSizeMax + heap_format::kSegmentBytes);
  expect_no_answer(10, "Was it cut?");
}

TEST_F(HeapVerbs, ACutInsideABlock) {
  make_sound();
  fs::resize_file(file_, fs::file_size(file_) - heap_format::kSegmentBytes);
  expect_damaged("segment 2");
  expect_uncountable();
}

TEST_F(HeapVerbs, DamagedHeadersOfSlabAndSegment) {
  make_sound();
  flip(file_, kSlab + 24);
  expect_damaged("the slab at byte " + std::to_string(kSlab) + " was overwritten");
  expect_uncountable();
  flip(file_, kSlab + 24);
  flip(file_, kSegment1 + 100);
  expect_damaged("segment 1 (at byte 4194304)");
  expect_uncountable();
}

TEST_F(HeapVerbs, ADamagedTable) {
  make_sound();
  flip(file_, heap_format::kTableOffset + 1);
  expect_damaged("segment 1");
  flip(file_, heap_format::kTableOffset + 1);
  flip(file_, heap_format::kTableOffset);
  expect_damaged("does not know the first segment");
  flip(file_, heap_format::kTableOffset);
  flip(file_, heap_format::kTableOffset + 6);
  expect_damaged("names segment 6, which is not there");
}

// What is counted stands elsewhere, so info still answers.
TEST_F(HeapVerbs, DamagedRootsAndLists) {
  make_sound();
  flip(file_, heap_format::kRootOffset + 6);
  expect_damaged("the root leads out of the heap");
  EXPECT_EQ(heap("info").code, 0);
  flip(file_, heap_format::kRootOffset + 6);
  flip(file_, heap_format::kNamedRootsOffset + 48 + 6);
  expect_damaged("named root 0 was overwritten");
  EXPECT_EQ(heap("info").code, 0);
  flip(file_, heap_format::kNamedRootsOffset + 48 + 6);
  flip(file_, heap_format::kSlabListsOffset + 6 * 4 + 3);
  expect_damaged("the list of slabs for blocks of 112");
  EXPECT_EQ(heap("info").code, 0);
}

TEST_F(HeapVerbs, OfManyFaultsOnlyTheFirstAreNamed) {
  make_sound();
  const int descriptor = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
  for (int slot = 0; slot < 150; ++slot) {
    const char name = 'a';
    ASSERT_EQ(::pwrite(descriptor, &name, 1,
                       static_cast<off_t>(heap_format::kNamedRootsOffset) + (slot + 2) * 64),
              1);
  }
  ::close(descriptor);
  const Answer check = heap("check");
  EXPECT_EQ(check.code, 10);
  EXPECT_EQ(std::count(check.out.begin(), check.out.end(), '\n'), 102);
  EXPECT_THAT(check.out, HasSubstr("\nand 50 more\n" + file_ + ": 150 faults\n"));
  const json told = parse(heap("check", true).out);
  EXPECT_EQ(told["faults"], 150);
  EXPECT_EQ(told["told"].size(), 100u);
}

TEST_F(HeapVerbs, BadArguments) {
  make_sound();
  EXPECT_EQ(pawl({"heap"}).code, 2);
  EXPECT_EQ(pawl({"heap", "mend", file_}).code, 2);
  EXPECT_EQ(pawl({"heap", "check"}).code, 2);
  EXPECT_EQ(pawl({"heap", "info", file_, "--bogus"}).code, 2);
  for (const std::string verb : {"check", "info"}) {
    const Answer help = pawl({"heap", verb, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Example:\n  pawl heap " + verb));
  }
}

}  // namespace
}  // namespace pawl::test
