// info, verify, log, recover and snapshot, of a group and of its files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "pawl/pawl.h"
#include "support/temporary_directory.h"

namespace pawl::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// So few that all records stay in the journal as it begins.
constexpr std::size_t kBytes = 2 * 4096;
constexpr std::uint64_t kCutJournalBytes = 60 << 10;  // of 64 KiB, or more
constexpr std::uint64_t kFirstRecord = 8192;

char* map_in(pawl_group* group, const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR);
  void* const at =
      pawl_group_mmap(group, nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
  if (at == MAP_FAILED) ::_exit(70);
  return static_cast<char*>(at);
}

class Groups : public ::testing::Test {
 protected:
  // Three commits of both files, the last of which cuts the second.
  void SetUp() override {
    for (const auto& path : {first_, second_}) write_file(path, std::string(kBytes, '\0'));
    const pid_t child = ::fork();
    if (child == 0) {
      pawl_group* const group = pawl_group_open(group_.c_str(), nullptr);
      if (group == nullptr) ::_exit(errno == EOPNOTSUPP ? 71 : 74);
      char* const first = map_in(group, first_);
      char* const second = map_in(group, second_);
      for (char commit = '1'; commit <= '3'; ++commit) {
        std::memset(first, commit, kBytes);
        std::memset(second, commit, 4096);
        const int descriptor = ::open(second_.c_str(), O_RDWR);
        if (commit == '3' && pawl_ftruncate(descriptor, 4096) != 0) ::_exit(72);
        if (pawl_group_msync(group, MS_SYNC) != 0) ::_exit(73);
      }
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 71) GTEST_SKIP() << "this file system has no user attributes";
    ASSERT_EQ(status, 0);
  }

  static json asked(const std::vector<std::string>& arguments) {
    const Answer answer = pawl(arguments);
    json parsed = json::parse(answer.out, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << answer.out << answer.err;
    return parsed;
  }
  void expect_recovered() const {
    EXPECT_EQ(read_file(first_), std::string(kBytes, '3'));
    EXPECT_EQ(read_file(second_), std::string(4096, '3'));
  }
  // One byte of the second record: the third tells that it was durable.
  void damage_the_second_record() const {
    const std::string journal = group_ + ".pawl";
    std::string content = read_file(journal);
    const std::size_t second = content.find("PREC", kFirstRecord + 4);
    ASSERT_NE(second, std::string::npos);
    content[second + 200] = static_cast<char>(content[second + 200] ^ 1);
    const int descriptor = ::open(journal.c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(descriptor, content.data(), content.size(), 0),
              static_cast<ssize_t>(content.size()));
    ::close(descriptor);
  }

  TemporaryDirectory directory_;
  std::string group_ = directory_ / "shop.group";
  std::string first_ = directory_ / "orders";
  std::string second_ = directory_ / "index";
};

TEST_F(Groups, InfoSaysWhoIsInTheGroup) {
  const json group = asked({"info", "--json", group_});
  EXPECT_EQ(group["state"], "needs-recovery");
  EXPECT_EQ(group["journal"]["records"], 3);
  ASSERT_EQ(group["journal"]["group_files"].size(), 2u);
  EXPECT_EQ(group["journal"]["group_files"][1]["name"], "index");
  const json file = asked({"info", "--json", second_});
  EXPECT_EQ(file["state"], "needs-recovery");
  EXPECT_EQ(file["journal"]["group"]["name"], "shop.group");
  EXPECT_EQ(file["recovered_size_bytes"], 4096);
  EXPECT_NE(pawl({"info", group_}).out.find("file 2 is index"), std::string::npos);
  EXPECT_NE(pawl({"info", first_}).out.find("shop.group, in which it is file 1"),
            std::string::npos);
}

TEST_F(Groups, LogTellsTheSizesOfAllFiles) {
  const json log = asked({"log", "--json", group_});
  ASSERT_EQ(log["records"].size(), 3u);
  EXPECT_EQ(log["records"][2]["files"][1]["file_size_bytes"], 4096);
  EXPECT_EQ(log["records"][2]["files"][1]["truncate_to"], 4096);
  EXPECT_NE(pawl({"log", first_}).out.find("(cut to 4096)"), std::string::npos);
}

TEST_F(Groups, RecoverOfTheGroupIsOfAllItsFiles) {
  EXPECT_EQ(pawl({"verify", group_}).code, 3);
  EXPECT_EQ(pawl({"verify", first_}).code, 3);
  const Answer answer = pawl({"recover", group_});
  EXPECT_EQ(answer.code, 0) << answer.err;
  expect_recovered();
  for (const auto& path : {group_, first_, second_}) EXPECT_EQ(pawl({"verify", path}).code, 0);
}

TEST_F(Groups, RecoverOfAFileLeavesTheOther) {
  EXPECT_EQ(pawl({"recover", second_}).code, 0);
  EXPECT_EQ(pawl({"verify", second_}).code, 0);
  EXPECT_EQ(pawl({"verify", first_}).code, 3);
  EXPECT_EQ(pawl({"recover", first_, group_}).code, 0);
  expect_recovered();
}

TEST_F(Groups, ASnapshotIsTheGroupsLastCommit) {
  for (const auto& [path, bytes] : {std::pair{first_, kBytes}, std::pair{second_, 4096ul}}) {
    const Answer answer = pawl({"snapshot", path, path + ".copy"});
    EXPECT_EQ(answer.code, 0) << answer.err;
    EXPECT_EQ(read_file(path + ".copy"), std::string(bytes, '3'));
  }
  EXPECT_EQ(pawl({"verify", first_}).code, 3) << "nothing was changed";
}

TEST_F(Groups, AMissingGroupIsAMissingJournal) {
  fs::rename(group_, group_ + ".away");
  EXPECT_EQ(pawl({"verify", first_}).code, 6);
  const Answer refused = pawl({"recover", first_});
  EXPECT_EQ(refused.code, 6);
  EXPECT_NE(refused.err.find("shop.group"), std::string::npos) << refused.err;
  EXPECT_EQ(pawl({"recover", "--accept-loss", first_}).code, 0);
  EXPECT_EQ(pawl({"verify", first_}).code, 0);
  fs::rename(group_ + ".away", group_);
  EXPECT_EQ(pawl({"recover", group_}).code, 0);
  EXPECT_EQ(read_file(second_), std::string(4096, '3'));
}

TEST_F(Groups, AMissingFileStopsTheGroupUntilItsLossIsAccepted) {
  fs::rename(first_, first_ + ".away");
  EXPECT_NE(pawl({"recover", group_}).code, 0);
  EXPECT_EQ(pawl({"recover", "--accept-loss", group_}).code, 0);
  EXPECT_EQ(read_file(second_), std::string(4096, '3'));
  fs::rename(first_ + ".away", first_);
  EXPECT_NE(pawl({"recover", first_}).code, 0) << "what only the group had is gone";
  EXPECT_EQ(pawl({"recover", "--accept-loss", first_}).code, 0);
}

TEST_F(Groups, FilesThatChangedNamesAreRefusedByEachVerb) {
  const std::string spare = directory_ / "spare";
  const auto change_names = [&] {
    fs::rename(first_, spare);
    fs::rename(second_, first_);
    fs::rename(spare, second_);
  };
  change_names();
  for (const auto& path : {group_, first_, second_}) {
    EXPECT_EQ(pawl({"verify", path}).code, 6) << path;
    EXPECT_EQ(pawl({"recover", path}).code, 6) << path;
    EXPECT_EQ(pawl({"recover", "--accept-loss", path}).code, 6) << path;
  }
  for (const auto& path : {first_, second_})
    EXPECT_NE(pawl({"snapshot", path, path + ".copy"}).code, 0) << path;
  change_names();
  EXPECT_EQ(pawl({"recover", group_}).code, 0);
  expect_recovered();
}

TEST_F(Groups, AnotherFileUnderAListedNameStopsTheGroupUntilItsLossIsAccepted) {
  fs::rename(first_, first_ + ".old");
  write_file(first_, "new");
  EXPECT_EQ(pawl({"verify", group_}).code, 6);
  EXPECT_EQ(pawl({"recover", group_}).code, 6);
  EXPECT_EQ(pawl({"recover", "--accept-loss", group_}).code, 0);
  EXPECT_EQ(read_file(first_), "new");
  EXPECT_EQ(read_file(second_), std::string(4096, '3'));
}

TEST_F(Groups, ACopyOfASideFileIsAccepted) {
  const std::string side = first_ + ".pawl";
  fs::copy_file(side, side + ".copy");
  fs::rename(side + ".copy", side);
  EXPECT_EQ(pawl({"verify", first_}).code, 5);
  EXPECT_EQ(pawl({"recover", first_}).code, 5);
  EXPECT_EQ(pawl({"recover", "--accept-loss", first_}).code, 0);
  EXPECT_EQ(pawl({"recover", group_}).code, 0);
  expect_recovered();
}

TEST_F(Groups, AnotherJournalOfTheGroupIsALossToBeAccepted) {
  fs::copy_file(first_ + ".pawl", directory_ / "side");
  fs::remove(group_ + ".pawl");
  EXPECT_EQ(pawl({"recover", "--accept-loss", group_}).code, 0);
  write_file(group_ + ".pawl", read_file(directory_ / "side"));
  const Answer refused = pawl({"recover", first_});
  EXPECT_EQ(refused.code, 5);
  EXPECT_NE(refused.err.find("is another journal"), std::string::npos) << refused.err;
  EXPECT_EQ(pawl({"recover", "--accept-loss", first_}).code, 0);
}

TEST_F(Groups, AFileWithoutItsSideFileIsLeftWhenItsLossIsAccepted) {
  fs::remove(first_ + ".pawl");
  EXPECT_EQ(pawl({"recover", group_}).code, 6);
  EXPECT_EQ(pawl({"recover", "--accept-loss", group_}).code, 0);
  EXPECT_EQ(read_file(second_), std::string(4096, '3'));
  EXPECT_NE(pawl({"verify", first_}).code, 0);
  EXPECT_EQ(pawl({"recover", "--accept-loss", first_}).code, 0);
}

TEST_F(Groups, DamageIsToldOfAndTheLossAccepted) {
  damage_the_second_record();
  for (const auto& path : {group_, first_}) {
    EXPECT_EQ(pawl({"verify", path}).code, 4) << path;
    EXPECT_EQ(pawl({"recover", path}).code, 4) << path;
  }
  EXPECT_EQ(pawl({"recover", "--accept-loss", group_}).code, 0);
  EXPECT_TRUE(fs::exists(group_ + ".pawl.damaged"));
  EXPECT_EQ(read_file(first_), std::string(kBytes, '1'));
  for (const auto& path : {group_, first_, second_}) EXPECT_EQ(pawl({"verify", path}).code, 0);
}

// Root, who recovers the files of a user, kept the copy for itself.
TEST_F(Groups, TheCopyOfADamagedJournalBelongedToRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  constexpr uid_t kUser = 51001;
  for (const auto& path : {group_, first_, second_}) {
    for (const auto& name : {path, path + ".pawl"})
      ASSERT_EQ(::chown(name.c_str(), kUser, kUser), 0);
  }
  damage_the_second_record();
  struct stat journal{};
  struct stat copy{};
  ASSERT_EQ(::stat((group_ + ".pawl").c_str(), &journal), 0);
  const std::string damaged = read_file(group_ + ".pawl");
  // It takes the place of nothing.
  write_file(group_ + ".pawl.damaged", "of earlier");
  ASSERT_EQ(::symlink("nowhere", (group_ + ".pawl.damaged.1").c_str()), 0);
  const Answer recovered = pawl({"recover", "--accept-loss", group_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  EXPECT_EQ(read_file(group_ + ".pawl.damaged"), "of earlier");
  ASSERT_EQ(::lstat((group_ + ".pawl.damaged.2").c_str(), &copy), 0) << recovered.out;
  EXPECT_EQ(copy.st_uid, kUser);
  EXPECT_EQ(copy.st_gid, kUser);
  EXPECT_EQ(copy.st_mode, journal.st_mode);
  EXPECT_EQ(read_file(group_ + ".pawl.damaged.2"), damaged);
}

// Root gave up, and copied, the journal of another file: the one that was looked at was in a
// directory that another user moves.
TEST_F(Groups, ADamagedJournalWasAnotherOneWhenItsLossWasAccepted) {
  constexpr int kRounds = 40;
  const std::string home = directory_ / "home";
  const std::string away = directory_ / "away";
  const std::string other = directory_ / "other";
  group_ = home + "/shop.group";
  first_ = home + "/orders";
  second_ = home + "/index";
  fs::create_directory(other);
  write_file(other + "/shop.group", "");
  write_file(other + "/shop.group.pawl", "a letter");
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    fs::remove_all(home);
    fs::create_directory(home);
    SetUp();
    if (IsSkipped()) return;
    damage_the_second_record();
    std::atomic<bool> stop{false};
    std::thread mover([&] {
      while (!stop.load()) {
        fs::rename(home, away);
        fs::create_symlink(other, home);
        fs::remove(home);
        fs::rename(away, home);
      }
    });
    pawl({"recover", "--accept-loss", group_});
    stop.store(true);
    mover.join();
    EXPECT_EQ(read_file(other + "/shop.group.pawl"), "a letter");
    EXPECT_FALSE(fs::exists(other + "/shop.group.pawl.damaged")) << "round " << round;
  }
}

// Who may write it could fill root's disk with the zeros of the copy.
TEST_F(Groups, ADamagedJournalThatWasMadeLongAndSparseWasCopiedWithItsHoles) {
  constexpr std::uintmax_t kLong = std::uintmax_t{1} << 40;
  constexpr blkcnt_t kBlocksMax = (64 << 20) / 512;
  damage_the_second_record();
  std::error_code too_long;
  fs::resize_file(group_ + ".pawl", kLong, too_long);
  if (too_long) GTEST_SKIP() << "this file system has no file of such a size";
  const Answer recovered = pawl({"recover", "--accept-loss", group_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  struct stat copy{};
  ASSERT_EQ(::stat((group_ + ".pawl.damaged").c_str(), &copy), 0);
  EXPECT_EQ(static_cast<std::uintmax_t>(copy.st_size), kLong);
  EXPECT_LT(copy.st_blocks, kBlocksMax);
}

TEST_F(Groups, ACutJournalGivesWhatIsLeftWhenTheLossIsAccepted) {
  const std::string journal = group_ + ".pawl";
  fs::resize_file(journal, kCutJournalBytes);
  EXPECT_EQ(pawl({"recover", group_}).code, 4);
  const Answer recovered = pawl({"recover", "--accept-loss", group_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  EXPECT_NE(recovered.out.find("replayed 3 records"), std::string::npos) << recovered.out;
  EXPECT_TRUE(fs::exists(journal + ".damaged"));
  expect_recovered();
}

TEST_F(Groups, AFileOfAGroupWhoseJournalIsCutGetsWhatIsLeft) {
  for (const std::string& journal : {group_ + ".pawl", first_ + ".pawl"})
    fs::resize_file(journal, kCutJournalBytes);
  EXPECT_EQ(pawl({"recover", first_}).code, 4);
  const Answer recovered = pawl({"recover", "--accept-loss", first_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  EXPECT_NE(recovered.out.find("replayed 3 records"), std::string::npos) << recovered.out;
  EXPECT_EQ(read_file(first_), std::string(kBytes, '3'));
  // The other one comes with its group.
  EXPECT_EQ(pawl({"recover", "--accept-loss", group_}).code, 0);
  expect_recovered();
}

TEST_F(Groups, AGroupTakesAFileWhoseSideFileIsCutWhenTheLossIsAccepted) {
  fs::resize_file(second_ + ".pawl", 4096);
  EXPECT_NE(pawl({"recover", group_}).code, 0);
  const Answer recovered = pawl({"recover", "--accept-loss", group_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  expect_recovered();
}

// As a device would be, on which that may act; a journal names what its writer likes.
TEST_F(Groups, AFifoInThePlaceOfAFileThatAJournalNamesWasOpened) {
  for (const auto& [replaced, asked] : {std::pair{first_, group_}, std::pair{group_, first_},
                                        std::pair{group_ + ".pawl", first_}}) {
    fs::rename(replaced, replaced + ".away");
    ASSERT_EQ(::mkfifo(replaced.c_str(), 0600), 0);
    const int events = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    ASSERT_GE(::inotify_add_watch(events, replaced.c_str(), IN_OPEN), 0);
    for (const char* const verb : {"info", "log"}) pawl({verb, asked});
    pawl({"snapshot", asked, asked + ".copy"});
    for (const char* const verb : {"verify", "recover"})
      EXPECT_NE(pawl({verb, asked}).code, 0) << verb << " " << replaced;
    alignas(inotify_event) char event[512];
    EXPECT_LT(::read(events, event, sizeof event), 0) << replaced << " was opened";
    ::close(events);
    fs::remove(replaced);
    fs::rename(replaced + ".away", replaced);
  }
  EXPECT_EQ(pawl({"recover", group_}).code, 0);
  expect_recovered();
}

TEST_F(Groups, RunKeepsFilesTogether) {
  EXPECT_EQ(pawl({"recover", group_}).code, 0);
  const Answer answer = pawl({"run", "--group", group_, "--atomic", "orders", "--", "python3", "-c",
                              "import mmap,os; f=open('" + first_ +
                                  "','r+b'); m=mmap.mmap(f.fileno(),0); m[0:1]=b'r'; m.flush(); "
                                  "print(os.path.exists('" +
                                  group_ + ".pawl'), os.path.getsize('" + first_ + ".pawl'))"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.out, "True 8192\n");
  EXPECT_EQ(read_file(first_)[0], 'r');
  EXPECT_FALSE(fs::exists(group_ + ".pawl")) << "the group ends with its last file";
}

// Another program has the only file that it maps.
TEST_F(Groups, AGroupThatNoFileCouldJoinWasLeftOpen) {
  EXPECT_EQ(pawl({"recover", group_}).code, 0);
  const int descriptor = ::open(first_.c_str(), O_RDWR);
  void* const at = pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
  ::close(descriptor);
  ASSERT_NE(at, MAP_FAILED) << pawl_last_error();
  const Answer answer =
      pawl({"run", "--group", group_, "--atomic", "orders", "--", "python3", "-c",
            "import mmap,os\nf=open('" + first_ +
                "','r+b')\ntry: mmap.mmap(f.fileno(),0)\nexcept OSError: print('refused', "
                "os.path.exists('" +
                group_ + ".pawl'))"});
  EXPECT_EQ(answer.out, "refused False\n") << answer.err;
  EXPECT_EQ(pawl({"verify", group_}).code, 0);
  EXPECT_EQ(pawl_munmap(at, kBytes), 0);
}

}  // namespace
}  // namespace pawl::test
