// info, verify, log and recover, over every state that a file and its journal can be in.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "journal/format.h"
#include "support/temporary_directory.h"

namespace pawl::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kBlock = 4096;

json parse(const std::string& text) {
  json parsed = json::parse(text, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << text;
  return parsed;
}

std::string mark_of(const std::string& file) {
  char value[8192];
  const ssize_t length = ::getxattr(file.c_str(), "user.pawl", value, sizeof(value));
  return length < 0 ? "" : std::string(value, static_cast<std::size_t>(length));
}

void overwrite(const std::string& file, std::uint64_t offset, const void* bytes,
               std::size_t count) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0) << file;
  EXPECT_EQ(::pwrite(descriptor, bytes, count, static_cast<off_t>(offset)),
            static_cast<ssize_t>(count));
  ::close(descriptor);
}

void flip(const std::string& file, std::uint64_t offset) {
  const std::string content = read_file(file);
  ASSERT_LT(offset, content.size());
  const char flipped = static_cast<char>(content[offset] ^ 0x10);
  overwrite(file, offset, &flipped, 1);
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    leave_by_crash(file_, 3);
    ASSERT_TRUE(fs::exists(journal_));
    if (mark_of(file_).empty()) GTEST_SKIP() << "this file system has no user attributes";
  }

  // Every verb that looks says the same, and changes nothing; recover refuses and changes nothing.
  void expect_refused(int code, const std::string& state, const std::string& word) {
    const std::string content = read_file(file_);
    const std::string journal = fs::is_regular_file(journal_) ? read_file(journal_) : "";
    const std::string mark = mark_of(file_);

    const Answer verified = pawl({"verify", file_});
    EXPECT_EQ(verified.code, code) << verified.out << verified.err;
    EXPECT_NE(verified.out.find(state + ": "), std::string::npos) << verified.out;
    EXPECT_NE(verified.out.find(word), std::string::npos) << verified.out;

    const Answer as_json = pawl({"verify", file_, "--json"});
    EXPECT_EQ(as_json.code, code);
    EXPECT_EQ(parse(as_json.out)["state"], state);
    EXPECT_EQ(parse(as_json.out)["exit_code"], code);

    const Answer told = pawl({"info", "--json", file_});
    EXPECT_EQ(told.code, 0) << told.err;
    EXPECT_EQ(parse(told.out)["state"], state);
    const json error = parse(told.out)["error"];
    EXPECT_TRUE(error.is_string() && std::string(error).starts_with("PAWL_ERROR_")) << error;
    EXPECT_EQ(parse(as_json.out)["error"], error);
    EXPECT_EQ(pawl({"info", file_}).code, 0);

    const Answer logged = pawl({"log", "--json", file_});
    EXPECT_EQ(logged.code, state == "in-use" ? 0 : code) << logged.err;
    EXPECT_EQ(parse(logged.out)["state"], state);

    const Answer recovered = pawl({"recover", "--json", file_});
    EXPECT_EQ(recovered.code, code) << recovered.out << recovered.err;
    EXPECT_EQ(parse(recovered.out)[0]["exit_code"], code);
    EXPECT_NE(recovered.err, "");

    EXPECT_TRUE(read_file(file_) == content) << "the file was changed";
    EXPECT_TRUE(journal.empty() || read_file(journal_) == journal) << "the journal was changed";
    EXPECT_EQ(mark_of(file_), mark);
  }

  void expect_recovered(int commits) {
    EXPECT_FALSE(fs::exists(journal_));
    EXPECT_EQ(mark_of(file_), "");
    const std::string content = read_file(file_);
    for (int commit = 1; commit <= 3; ++commit) {
      const std::string text = "commit " + std::to_string(commit);
      const bool there =
          content.substr(static_cast<std::size_t>(commit - 1) * kBlock, text.size()) == text;
      EXPECT_EQ(there, commit <= commits) << commit;
    }
    EXPECT_EQ(pawl({"verify", file_}).code, 0);
  }

  // Where record n of the three stands: each fills one block.
  std::uint64_t position(int sequence) {
    const json records = parse(pawl({"log", "--json", file_}).out)["records"];
    for (const json& record : records) {
      if (record["sequence"] == sequence) return record["position"];
    }
    ADD_FAILURE() << "no record " << sequence;
    return 0;
  }

  TemporaryDirectory directory_;
  const std::string file_ = directory_ / "accounts.db";
  const std::string journal_ = file_ + ".pawl";
};

TEST_F(Files, ThatACrashLeftAreToldOfAndRecovered) {
  const Answer verified = pawl({"verify", file_});
  EXPECT_EQ(verified.code, 3) << verified.out << verified.err;
  EXPECT_NE(verified.out.find("needs-recovery"), std::string::npos) << verified.out;
  EXPECT_NE(verified.out.find("3 records"), std::string::npos) << verified.out;

  const json told = parse(pawl({"info", "--json", file_}).out);
  EXPECT_EQ(told["state"], "needs-recovery");
  EXPECT_EQ(told["journal"]["records"], 3);
  EXPECT_EQ(told["journal"]["locked"], false);
  EXPECT_EQ(told["journal"]["header"]["version"], 2);
  EXPECT_EQ(told["journal"]["header"]["block_bytes"], 4096);
  EXPECT_EQ(told["mark"]["journal_id"], told["journal"]["header"]["journal_id"]);
  const Answer text = pawl({"info", file_});
  EXPECT_NE(text.out.find("3 pending"), std::string::npos) << text.out;

  const Answer logged = pawl({"log", file_});
  EXPECT_EQ(logged.code, 0);
  EXPECT_EQ(std::count(logged.out.begin(), logged.out.end(), '\n'), 4) << logged.out;
  const json log = parse(pawl({"log", "--json", file_}).out);
  ASSERT_EQ(log["records"].size(), 3u);
  EXPECT_EQ(log["records"][0]["checksum"], "ok");
  EXPECT_EQ(log["records"][0]["ranges"], 1);
  EXPECT_EQ(log["records"][2]["file_size_bytes"], 8 * kBlock);
  EXPECT_EQ(log["end"]["state"], "ok");

  const Answer recovered = pawl({"recover", file_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  EXPECT_NE(recovered.out.find("3 records replayed"), std::string::npos) << recovered.out;
  expect_recovered(3);
  const Answer again = pawl({"recover", file_});
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.out.find("nothing to recover"), std::string::npos) << again.out;
}

TEST_F(Files, WithATornLastRecordDropIt) {
  flip(journal_, position(3) + 100);
  EXPECT_EQ(pawl({"verify", file_}).code, 3);
  const json log = parse(pawl({"log", "--json", file_}).out);
  EXPECT_EQ(log["records"].size(), 2u);
  EXPECT_EQ(log["end"]["state"], "torn");
  EXPECT_NE(log["end"]["reason"], "");
  const Answer recovered = pawl({"recover", file_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  EXPECT_NE(recovered.out.find("dropped"), std::string::npos) << recovered.out;
  expect_recovered(2);
}

TEST_F(Files, WithADamagedRecordAreRefused) {
  flip(journal_, position(2) + 100);
  expect_refused(4, "damaged-journal", "record 2");
  EXPECT_EQ(parse(pawl({"verify", "--json", file_}).out)["error"], "PAWL_ERROR_DAMAGED_RECORD");
  EXPECT_EQ(parse(pawl({"log", "--json", file_}).out)["end"]["state"], "damaged");
  // What failed is no part of the log.
  const Answer log = pawl({"log", file_});
  EXPECT_EQ(log.code, 4);
  EXPECT_EQ(log.out.find("damaged-journal"), std::string::npos) << log.out;
  EXPECT_NE(log.err.find("pawl log: damaged-journal"), std::string::npos) << log.err;
}

// "Restore the file from a copy": who copied into it got the commits of its journal over that.
TEST_F(Files, TellsHowToRestoreACopy) {
  const std::string copy = file_ + ".copy";
  write_file(copy, std::string(8 * kBlock, 'c'));
  flip(journal_, position(2) + 100);
  const Answer refused = pawl({"recover", file_});
  EXPECT_NE(refused.err.find("rename a copy over it"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--accept-loss FILE"), std::string::npos) << refused.err;
  // As it says.
  fs::rename(copy, file_);
  fs::rename(journal_, journal_ + ".moved");
  EXPECT_EQ(pawl({"recover", file_}).code, 0);
  EXPECT_EQ(read_file(file_), std::string(8 * kBlock, 'c'));
}

TEST_F(Files, WithADamagedRecordGiveWhatIsLeftWhenTheLossIsAccepted) {
  flip(journal_, position(2) + 100);
  const Answer recovered = pawl({"recover", "--accept-loss", file_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  EXPECT_NE(recovered.out.find("1 record,"), std::string::npos) << recovered.out;
  EXPECT_TRUE(fs::exists(journal_ + ".damaged"));
  expect_recovered(1);
}

TEST_F(Files, WithADamagedHeaderAreRefused) {
  flip(journal_, 20);
  flip(journal_, kBlock + 20);
  expect_refused(4, "damaged-journal", "header");
  EXPECT_EQ(pawl({"recover", "--accept-loss", file_}).code, 0);
  EXPECT_TRUE(fs::exists(journal_ + ".damaged"));
  expect_recovered(0);
}

TEST_F(Files, WithAnEmptiedJournalAreRecoveredWhenTheLossIsAccepted) {
  fs::resize_file(journal_, 0);
  expect_refused(4, "damaged-journal", "--accept-loss");
  EXPECT_EQ(pawl({"recover", "--accept-loss", file_}).code, 0);
  expect_recovered(0);
}

TEST_F(Files, ThatWereCopiedWithoutTheirJournalAreTakenAsTheyAreWhenTheLossIsAccepted) {
  const std::string copy = directory_ / "copy.db";
  const std::string mark = mark_of(file_);
  fs::copy_file(file_, copy);
  ASSERT_EQ(::setxattr(copy.c_str(), "user.pawl", mark.data(), mark.size(), 0), 0);
  const Answer refused = pawl({"recover", copy});
  EXPECT_EQ(refused.code, 6);
  EXPECT_NE(refused.err.find("--accept-loss"), std::string::npos) << refused.err;
  EXPECT_EQ(pawl({"recover", "--accept-loss", copy}).code, 0);
  EXPECT_EQ(pawl({"verify", copy}).code, 0);
  EXPECT_EQ(pawl({"recover", file_}).code, 0);
  expect_recovered(3);
}

TEST_F(Files, WithOneTornHeaderAreRecovered) {
  flip(journal_, 20);
  EXPECT_EQ(pawl({"verify", file_}).code, 3);
  EXPECT_EQ(parse(pawl({"info", "--json", file_}).out)["journal"]["other_header_damaged"], true);
  EXPECT_EQ(pawl({"recover", file_}).code, 0);
  expect_recovered(3);
}

TEST_F(Files, WithATruncatedJournalAreRefused) {
  const std::uint64_t second = position(2);
  // In the middle of the ring, before a record, within the header, and all of it.
  for (const std::uint64_t size :
       {std::uint64_t{50000}, second, std::uint64_t{50}, std::uint64_t{0}}) {
    fs::resize_file(journal_, size);
    expect_refused(4, "damaged-journal", "--accept-loss");
  }
}

// The space behind the records is cut, the last record, and all of them.
TEST_F(Files, WithATruncatedJournalGiveWhatIsLeftWhenTheLossIsAccepted) {
  const std::uint64_t sizes[] = {fs::file_size(journal_) - kBlock, position(3) + 100, position(1)};
  const int commits[] = {3, 2, 0};
  for (int i = 0; i < 3; ++i) {
    fs::resize_file(journal_, sizes[i]);
    const Answer recovered = pawl({"recover", "--accept-loss", file_});
    EXPECT_EQ(recovered.code, 0) << recovered.err;
    EXPECT_NE(recovered.out.find("replayed " + std::to_string(commits[i]) + " record"),
              std::string::npos)
        << recovered.out;
    EXPECT_TRUE(fs::exists(journal_ + ".damaged"));
    expect_recovered(commits[i]);
    fs::remove(journal_ + ".damaged");
    fs::remove(file_);
    leave_by_crash(file_, 3);
  }
}

TEST_F(Files, WithAJournalThatWasMadeLongAndSparseAreRecovered) {
  constexpr off_t kLength = off_t{1} << 43;
  if (::truncate(journal_.c_str(), kLength) != 0) GTEST_SKIP() << "no file of such a size";
  EXPECT_EQ(pawl({"verify", file_}).code, 3);
  EXPECT_EQ(pawl({"recover", file_}).code, 0);
  expect_recovered(3);
}

TEST_F(Files, WithAJournalOfANewerVersionAreRefused) {
  journal::Header header;  // a magic and a version: all that this version may believe of it
  header.version = 9;
  overwrite(journal_, 0, &header, sizeof(header));
  expect_refused(8, "newer-version", "version 9");
}

TEST_F(Files, WithAMarkOfANewerVersionAreRefused) {
  ASSERT_EQ(::setxattr(file_.c_str(), "user.pawl", "2 new", 5, 0), 0);
  expect_refused(8, "newer-version", "mark");
}

TEST_F(Files, WithTheJournalOfAnotherAreRefused) {
  const std::string other = directory_ / "other.db";
  leave_by_crash(other, 2);
  fs::copy_file(other + ".pawl", journal_, fs::copy_options::overwrite_existing);
  expect_refused(5, "foreign-journal", "another file");
  EXPECT_EQ(pawl({"recover", "--accept-loss", file_}).code, 5);
}

TEST_F(Files, WithoutTheirMarkDoNotBelieveAJournal) {
  ASSERT_EQ(::removexattr(file_.c_str(), "user.pawl"), 0);
  expect_refused(5, "foreign-journal", "was removed");
}

TEST_F(Files, BesideSomethingThatIsNoJournalAreRefused) {
  write_file(journal_, "a letter to my mother, who keeps her recipes beside my accounts");
  expect_refused(5, "foreign-journal", "no Pawl journal");
}

TEST_F(Files, WithALinkInTheJournalsPlaceAreRefused) {
  const std::string elsewhere = directory_ / "elsewhere";
  fs::rename(journal_, elsewhere);
  fs::create_symlink(elsewhere, journal_);
  const std::string before = read_file(elsewhere);
  expect_refused(5, "foreign-journal", "symbolic link");
  EXPECT_TRUE(fs::is_symlink(journal_));
  EXPECT_TRUE(read_file(elsewhere) == before) << "what the link points to was changed";
}

TEST_F(Files, WithADirectoryInTheJournalsPlaceAreRefused) {
  fs::remove(journal_);
  fs::create_directory(journal_);
  expect_refused(5, "foreign-journal", "not a regular file");
  const Answer recovered = pawl({"recover", file_});
  EXPECT_NE(recovered.err.find("move it away"), std::string::npos) << recovered.err;
  EXPECT_TRUE(fs::is_directory(journal_));
}

TEST_F(Files, WithAJournalOfTwoNamesAreRefused) {
  fs::create_hard_link(journal_, directory_ / "second-name");
  expect_refused(5, "foreign-journal", "names");
}

TEST_F(Files, ThatAreMissingBesideTheirJournalAreToldOf) {
  fs::remove(file_);
  for (const char* verb : {"info", "verify", "log", "recover"}) {
    const Answer answer = pawl({verb, file_});
    EXPECT_EQ(answer.code, 1) << verb;
    EXPECT_NE(answer.err.find("Its journal " + journal_ + " is there"), std::string::npos)
        << answer.err;
  }
}

TEST_F(Files, OnAReadOnlyFileSystemAreRecoveredAsASnapshot) {
  const TemporaryDirectory elsewhere;
  const std::string copy = elsewhere / "copy";
  const Answer answer = with_own_mounts(
      "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" || exit 77\n"
      "\"$PAWL_COMMAND\" snapshot \"$0/accounts.db\" " +
          copy +
          " || exit 1\n"
          "exec \"$PAWL_COMMAND\" recover \"$0/accounts.db\"",
      directory_.path().string());
  if (answer.code == kNoMounts) GTEST_SKIP() << answer.err;
  EXPECT_NE(answer.err.find("pawl snapshot"), std::string::npos) << answer.err;
  EXPECT_EQ(read_file(copy).substr(2 * kBlock, 8), "commit 3");
}

TEST_F(Files, WithControlCharactersInTheirNamesArePrintedInOneLine) {
  const std::string file = directory_ / "two\nlines\x1b[2J";
  leave_by_crash(file, 1);
  for (const char* verb : {"info", "verify", "log", "recover"}) {
    const Answer answer = pawl({verb, file});
    EXPECT_EQ((answer.out + answer.err).find("two\nlines"), std::string::npos) << verb;
    EXPECT_EQ((answer.out + answer.err).find('\x1b'), std::string::npos) << verb;
    const bool names_it = std::string(verb) != "log";
    EXPECT_EQ(answer.out.find("two\\nlines\\x1b[2J") != std::string::npos, names_it) << answer.out;
  }
}

TEST_F(Files, WithoutTheirJournalAreRefused) {
  fs::remove(journal_);
  expect_refused(6, "missing-journal", "missing");
  const Answer recovered = pawl({"recover", "--accept-loss", file_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  expect_recovered(0);
}

TEST_F(Files, WithACopyOfTheirJournalAreRecoveredWhenTheCopyIsAccepted) {
  fs::copy_file(journal_, directory_ / "copy");
  fs::rename(directory_ / "copy", journal_);
  expect_refused(5, "foreign-journal", "--accept-loss");
  const Answer recovered = pawl({"recover", "--accept-loss", file_});
  EXPECT_EQ(recovered.code, 0) << recovered.err;
  expect_recovered(3);
}

// Whatever stands beside the file now, its commits are in the journal that its mark names.
TEST_F(Files, WhoseJournalStandsUnderTheirOldNameGaveItUp) {
  const std::string renamed = directory_ / "renamed.db";
  const std::string beside = renamed + ".pawl";
  fs::rename(file_, renamed);
  const auto expect_found = [&](int code) {
    const Answer refused = pawl({"recover", "--accept-loss", renamed});
    EXPECT_EQ(refused.code, code);
    EXPECT_NE(refused.err.find("rename that to"), std::string::npos) << refused.err;
    EXPECT_TRUE(fs::exists(journal_));
    EXPECT_NE(mark_of(renamed), "");
    fs::remove(beside);
  };
  write_file(beside, "");  // something emptied it, or nothing ever was in it
  expect_found(4);
  fs::copy_file(journal_, beside);
  expect_found(5);
  fs::copy_file(journal_, beside);
  flip(beside, kBlock + kBlock + 100);
  expect_found(5);
  fs::rename(journal_, beside);
  EXPECT_EQ(pawl({"recover", renamed}).code, 0);
  EXPECT_EQ(read_file(renamed).substr(2 * kBlock, 8), "commit 3");
}

TEST_F(Files, InUseAreLeftAlone) {
  ASSERT_EQ(pawl({"recover", file_}).code, 0);
  const Holder holder(file_);
  expect_refused(7, "in-use", std::to_string(holder.process()));
  const json told = parse(pawl({"info", "--json", file_}).out);
  EXPECT_EQ(told["journal"]["locked"], true);
  EXPECT_EQ(told["journal"]["header"]["writer_process"], holder.process());
  EXPECT_EQ(pawl({"recover", "--accept-loss", file_}).code, 7);
}

TEST_F(Files, AreAllTriedByRecover) {
  const std::string second = directory_ / "second.db";
  leave_by_crash(second, 1);
  const Answer answer = pawl({"recover", directory_ / "nothing", file_, second});
  EXPECT_EQ(answer.code, 1);
  EXPECT_NE(answer.err.find("nothing"), std::string::npos);
  expect_recovered(3);
  EXPECT_EQ(pawl({"verify", second}).code, 0);
}

TEST_F(Files, ReachedThroughALinkAreTheFileItself) {
  fs::create_symlink(file_, directory_ / "link.db");
  EXPECT_EQ(pawl({"verify", directory_ / "link.db"}).code, 3);
  EXPECT_EQ(pawl({"recover", directory_ / "link.db"}).code, 0);
  expect_recovered(3);
}

TEST_F(Files, AreNotTheirJournals) {
  for (const char* verb : {"info", "verify", "log", "recover"}) {
    const Answer answer = pawl({verb, journal_});
    EXPECT_EQ(answer.code, 1) << verb;
    EXPECT_NE(answer.err.find("is a journal"), std::string::npos) << answer.err;
  }
}

TEST(NoFiles, AreRefusedByEveryVerb) {
  const TemporaryDirectory directory;
  for (const char* verb : {"info", "verify", "log", "recover"}) {
    for (const std::string& name :
         {directory / "missing", directory.path().string(), std::string("/dev/null")}) {
      const Answer answer = pawl({verb, name});
      EXPECT_EQ(answer.code, 1) << verb << " " << name;
      EXPECT_NE(answer.err, "") << verb << " " << name;
    }
    EXPECT_EQ(pawl({verb}).code, 2) << verb;
    EXPECT_EQ(pawl({verb, "--no-such-option", directory / "missing"}).code, 2) << verb;
  }
}

TEST(NoFiles, ThatNoOneMayReadAreRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TemporaryDirectory directory;
  const std::string file = directory / "secret";
  write_file(file, "secret");
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  EXPECT_EQ(pawl({"info", file}).code, 1);
}

TEST(PlainFiles, OfSectionsWereCalledClean) {
  const TemporaryDirectory directory;
  const std::string file = directory / "stack.fase";
  write_file(file, "PAWLFASE" + std::string(8 * kBlock, 'x'));
  for (const char* const verb : {"info", "verify", "recover"}) {
    const Answer answer = pawl({verb, file});
    EXPECT_EQ(answer.code, 1) << verb;
    EXPECT_THAT(answer.err, ::testing::HasSubstr("pawl fase info")) << verb;
  }
}

TEST(PlainFiles, AreClean) {
  const TemporaryDirectory directory;
  const std::string file = directory / "plain";
  write_file(file, "plain");
  EXPECT_EQ(pawl({"verify", file}).code, 0);
  EXPECT_EQ(pawl({"log", file}).code, 0);
  EXPECT_EQ(parse(pawl({"log", file, "--json"}).out)["records"].size(), 0u);
  EXPECT_EQ(parse(pawl({"info", file, "--json"}).out)["state"], "clean");
  EXPECT_EQ(parse(pawl({"recover", file, "--json"}).out)[0]["records_replayed"], 0);
}

}  // namespace
}  // namespace pawl::test
