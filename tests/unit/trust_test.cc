// Whose journal may change whose file: hostile journals, and what users who share a folder leave.
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "journal/replay.h"
#include "mapping/mapping.h"
#include "mapping/recovery.h"
#include "medium/block_medium.h"
#include "pawl/heap.h"
#include "pawl/pawl.h"
#include "support/access_list.h"
#include "support/hostile_journals.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

using test::read_file;
using test::TemporaryDirectory;
using test::write_file;

constexpr std::size_t kBytes = 64 * kPageBytes;
constexpr uid_t kOwner = 51001;
constexpr uid_t kOther = 51002;
constexpr uid_t kHostile = 51003;
constexpr gid_t kShared = 52000;  // of kOwner and kOther

// Runs `work` as this user; what it returns, or 128 and the signal that ended it.
int as_user(uid_t user, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr unsigned kSecondsMax = 60;  // ends one that hangs
    ::alarm(kSecondsMax);
    const gid_t groups[] = {kShared};
    const std::size_t count = user == kHostile ? 0 : 1;
    if (::setgroups(count, groups) != 0 || ::setresgid(user, user, user) != 0 ||
        ::setresuid(user, user, user) != 0)
      ::_exit(99);
    ::_exit(work());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The errno of a call that returned this.
int outcome(long result) {
  if (result >= 0) return 0;
  if (std::getenv("PAWL_TEST_SHOW") != nullptr) std::fprintf(stderr, "%s\n", pawl_last_error());
  return errno;
}

bool fails(long result, int error_number, pawl_error code) {
  if (result == -1 && errno == error_number && pawl_last_error_code() == code) return true;
  std::fprintf(stderr, "%s\n", pawl_last_error());
  return false;
}

char* map(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR);
  void* const at = pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
  const int failure = errno;
  ::close(descriptor);
  errno = failure;
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

// Commits this value everywhere, and dies.
int commit_and_die(const std::string& path, char value) {
  char* const bytes = map(path);
  if (bytes == nullptr) return outcome(-1);
  std::memset(bytes, value, kBytes);
  if (pawl_msync(bytes, kBytes, MS_SYNC) != 0) return 2;
  ::raise(SIGKILL);
  return 3;
}

class Trust : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "to be several users takes root";
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  }

  // A file of kOwner in a folder of this owner and mode.
  std::string shared_file(uid_t owner_of_folder, mode_t mode_of_folder, mode_t mode) const {
    const std::string folder = directory_ / "folder";
    EXPECT_EQ(::mkdir(folder.c_str(), 0755), 0);
    EXPECT_EQ(::chown(folder.c_str(), owner_of_folder, kShared), 0);
    EXPECT_EQ(::chmod(folder.c_str(), mode_of_folder), 0);
    std::string path = folder + "/db";
    write_file(path, std::string(kBytes, 'a'));
    EXPECT_EQ(::chown(path.c_str(), kOwner, kShared), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  TemporaryDirectory directory_;
};

std::string value_of(const std::string& path) {
  const std::string content = read_file(path);
  if (content.size() != kBytes) return "size " + std::to_string(content.size());
  return content == std::string(kBytes, content[0]) ? content.substr(0, 1) : "a mixture";
}

std::string mark_of(const std::string& path) {
  char value[4096];
  const ssize_t length = ::getxattr(path.c_str(), "user.pawl", value, sizeof value);
  return length < 0 ? "" : std::string(value, static_cast<std::size_t>(length));
}

JournalId id_in_mark(const std::string& path) {
  JournalId id{};
  EXPECT_TRUE(test::read_marked_id(path, id));
  return id;
}

// The inode number and the birth time of a file, as a mark has them.
std::string identity_of(const std::string& path) {
  struct statx status{};
  EXPECT_EQ(::statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &status), 0);
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return std::to_string(status.stx_ino) + ":" +
         std::to_string(status.stx_btime.tv_sec * kNanoseconds + status.stx_btime.tv_nsec);
}

void make_journal_of_group(const std::string& group, const std::string& name, const JournalId& id,
                           const std::string& content) {
  ASSERT_TRUE(test::make_journal_of_group(group, name, id, content, kBytes));
}

// The list of a group's journal was believed: root, who read a file, overwrote that of another
// user.
TEST_F(Trust, AJournalOfAGroupChangedAFileThatIsNotOfTheGroup) {
  const std::string victim = shared_file(kOwner, 0755, 0644);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(victim, 'b'); }), 128 + SIGKILL);
  const std::string folder = directory_ / "hostile";
  ASSERT_EQ(::mkdir(folder.c_str(), 0755), 0);
  ASSERT_EQ(::symlink(victim.c_str(), (folder + "/link").c_str()), 0);
  const std::string before = read_file(victim + ".pawl");
  for (const uid_t owner : {kHostile, kOwner, uid_t{0}}) {
    for (const std::string& name :
         {victim, std::string("../folder/db"), std::string("link"), std::string("./link")}) {
      const std::string group = folder + "/group";
      make_journal_of_group(group, name, id_in_mark(victim), "hostile");
      for (const std::string& path : {group, group + ".pawl"})
        ASSERT_EQ(::chown(path.c_str(), owner, owner), 0);
      EXPECT_EQ(pawl_recover(group.c_str()), -1) << name << " of " << owner;
      EXPECT_EQ(errno, owner == kHostile ? EPERM : EBADMSG) << pawl_last_error();
      EXPECT_EQ(value_of(victim), "a");
      // Nor is its mark the group's to clear.
      auto medium = open_block_medium(group, false);
      ASSERT_TRUE(medium.ok());
      EXPECT_TRUE(recover(*medium.value(), true).ok());
      EXPECT_EQ(value_of(victim), "a");
      EXPECT_NE(mark_of(victim), "");
      EXPECT_EQ(read_file(victim + ".pawl"), before);
    }
  }
  EXPECT_EQ(pawl_recover(victim.c_str()), 1) << pawl_last_error();
  EXPECT_EQ(value_of(victim), "b");
}

// The journal of a group had the rights of the group's file, which is made with the umask, and not
// those of the files whose bytes it has.
class TrustInGroups : public Trust {
 protected:
  void SetUp() override {
    Trust::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(::mkdir(folder_.c_str(), 0777), 0);
    ASSERT_EQ(::chown(folder_.c_str(), kOwner, kShared), 0);
    ASSERT_EQ(::chmod(folder_.c_str(), 02777), 0);
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 07777;
  }
  char* map_in(pawl_group* group, mode_t mode) const {
    write_file(file_, std::string(kBytes, 'a'));
    if (::chmod(file_.c_str(), mode) != 0) return nullptr;
    const int descriptor = ::open(file_.c_str(), O_RDWR);
    void* const at =
        pawl_group_mmap(group, nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    ::close(descriptor);
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  }
  // Of a file with this mode, in a group that is made with no umask; then `work` is done.
  int commit_in_group(mode_t mode, const std::function<int(char*, pawl_group*)>& work) const {
    return as_user(kOwner, [&] {
      ::umask(0);
      pawl_group* const group = pawl_group_open(group_.c_str(), nullptr);
      if (group == nullptr) return outcome(-1);
      // Who opens it now reads, and writes, what is committed later.
      if (mode_of(journal_) != 0600) return 100;
      char* const bytes = map_in(group, mode);
      if (bytes == nullptr) return outcome(-1);
      std::memset(bytes, 'b', kBytes);
      if (pawl_group_msync(group, MS_SYNC) != 0) return outcome(-1);
      return work(bytes, group);
    });
  }
  int commit_in_group_and_die(mode_t mode) const {
    return commit_in_group(mode, [](char*, pawl_group*) {
      ::raise(SIGKILL);
      return 101;
    });
  }

  const std::string folder_ = directory_ / "team";
  const std::string file_ = folder_ + "/db";
  const std::string group_ = folder_ + "/group";
  const std::string journal_ = group_ + ".pawl";
};

TEST_F(TrustInGroups, TheJournalOfAGroupToldWhatItsFilesKeepPrivate) {
  ASSERT_EQ(commit_in_group_and_die(0600), 128 + SIGKILL);
  EXPECT_EQ(mode_of(journal_), 0600u);
  for (const uid_t user : {kOther, kHostile}) {
    EXPECT_EQ(as_user(user, [&] { return outcome(::open(journal_.c_str(), O_RDONLY)); }), EACCES);
  }
  // Nor does a recovery of the file alone give it the rights of the group's file.
  ASSERT_EQ(mode_of(group_), 0666u);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file_.c_str())); }), 0);
  EXPECT_EQ(value_of(file_), "b");
  EXPECT_EQ(mode_of(journal_), 0600u);
}

TEST_F(TrustInGroups, WhoMayHaveAllFilesMayHaveTheJournal) {
  for (const mode_t mode : {0660, 0666, 0644}) {
    ASSERT_EQ(commit_in_group_and_die(mode), 128 + SIGKILL);
    EXPECT_EQ(mode_of(journal_), mode);
    const uid_t user = mode == 0644 ? kOwner : kOther;
    EXPECT_EQ(as_user(user, [&] { return outcome(pawl_recover(file_.c_str())); }), 0);
    EXPECT_EQ(value_of(file_), "b");
    EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(group_.c_str())); }), 0);
  }
}

TEST_F(TrustInGroups, AFileThatWasMadePrivateToldItsCommitsInTheJournalOfItsGroup) {
  EXPECT_EQ(commit_in_group(0666,
                            [&](char* bytes, pawl_group* group) {
                              if (mode_of(journal_) != 0666) return 1;
                              if (::chmod(file_.c_str(), 0600) != 0) return 2;
                              bytes[0] = 's';
                              if (pawl_group_msync(group, MS_SYNC) != 0) return outcome(-1);
                              return mode_of(journal_) == 0600 ? 0 : 3;
                            }),
            0);
}

TEST_F(TrustInGroups, ARecordInTheJournalOfAGroupThatAnybodyCouldWriteWasBelieved) {
  ASSERT_EQ(commit_in_group_and_die(0600), 128 + SIGKILL);
  for (const mode_t mode : {0620, 0602}) {
    ASSERT_EQ(::chmod(journal_.c_str(), mode), 0);
    for (const std::string& path : {file_, group_}) {
      EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(path.c_str())); }), EBADMSG);
      EXPECT_EQ(as_user(kOwner,
                        [&] {
                          const auto medium = std::move(open_block_medium(path, false).value());
                          return recover(*medium, true).status().error_number();
                        }),
                EBADMSG)
          << path;
    }
    EXPECT_EQ(as_user(kOwner,
                      [&] {
                        const std::string copy = folder_ + "/copy";
                        return outcome(pawl_snapshot(file_.c_str(), copy.c_str(), 0));
                      }),
              EBADMSG);
    EXPECT_EQ(value_of(file_), "a");
  }
  ASSERT_EQ(::chmod(journal_.c_str(), 0600), 0);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(group_.c_str())); }), 0);
  EXPECT_EQ(value_of(file_), "b");
}

// Another user puts a group and a journal of its id in the place of those that a crash left.
TEST_F(Trust, AGroupThatAnotherUserReplacedIsRefusedToItsFile) {
  const std::string folder = directory_ / "folder";
  ASSERT_EQ(::mkdir(folder.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  const std::string file = folder + "/db";
  const std::string group = folder + "/group";
  ASSERT_EQ(as_user(kOwner,
                    [&] {
                      write_file(file, std::string(kBytes, 'a'));
                      pawl_group* const opened = pawl_group_open(group.c_str(), nullptr);
                      if (opened == nullptr) return 1;
                      const int descriptor = ::open(file.c_str(), O_RDWR);
                      void* const at =
                          pawl_group_mmap(opened, nullptr, kBytes, PROT_READ | PROT_WRITE,
                                          MAP_ATOMIC, descriptor, 0);
                      if (at == MAP_FAILED) return 2;
                      std::memset(at, 'b', kBytes);
                      if (pawl_group_msync(opened, MS_SYNC) != 0) return 3;
                      ::raise(SIGKILL);
                      return 4;
                    }),
            128 + SIGKILL);
  for (const std::string suffix : {"", ".pawl"})
    std::filesystem::rename(group + suffix, folder + "/away" + suffix);
  make_journal_of_group(group, "db", id_in_mark(file), "hostile");
  for (const std::string& path : {group, group + ".pawl"}) {
    ASSERT_EQ(::chown(path.c_str(), kHostile, kHostile), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  }
  for (const uid_t user : {kOwner, uid_t{0}}) {
    for (const std::string& path : {file, group}) {
      if (user == kOwner && path == group) continue;
      EXPECT_EQ(as_user(user, [&] { return outcome(pawl_recover(path.c_str())); }), EPERM) << path;
    }
    EXPECT_EQ(value_of(file), "a");
  }
  for (const std::string suffix : {"", ".pawl"})
    std::filesystem::rename(folder + "/away" + suffix, group + suffix);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), 0);
  EXPECT_EQ(value_of(file), "b");
}

// Whose owner was looked at behind that.  A lease shows that a file is opened: it is asked back.
TEST_F(Trust, TheGroupThatASideFileNamesWasOpenedBeforeItsOwnerWasLookedAt) {
  const std::string file = shared_file(kOwner, 0777, 0644);
  const std::string group = directory_ / "folder/group";
  write_file(group, "");
  ASSERT_EQ(::chown(group.c_str(), kHostile, kHostile), 0);
  const JournalId id{};
  ASSERT_TRUE(test::make_side_file_of_member(file, group, id));
  ASSERT_EQ(::chown((file + ".pawl").c_str(), kOwner, kShared), 0);
  const std::string mark = "2 " + std::string(32, '0') + " open " + identity_of(file) + " " +
                           identity_of(file + ".pawl") + " " + file + ".pawl";
  ASSERT_EQ(::setxattr(file.c_str(), "user.pawl", mark.data(), mark.size(), 0), 0);
  const int leased = ::open(group.c_str(), O_RDONLY);
  ::signal(SIGIO, SIG_IGN);
  if (::fcntl(leased, F_SETLEASE, F_RDLCK) != 0) GTEST_SKIP() << "no leases here";
  for (const std::function<int()>& look : std::initializer_list<std::function<int()>>{
           [&] { return outcome(pawl_recover(file.c_str())); },
           [&] { return map(file) == nullptr ? errno : 0; },
           [&] { return outcome(pawl_snapshot(file.c_str(), (file + ".copy").c_str(), 0)); }}) {
    EXPECT_EQ(look(), EPERM) << pawl_last_error();
    EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_GROUP_OTHER_OWNER) << pawl_last_error();
    EXPECT_EQ(::fcntl(leased, F_GETLEASE), F_RDLCK);
  }
  ::close(leased);
}

// Found by the hostile directories: root opened a group by a link of another user to a journal that
// was not there, and made an empty one of its own in its place.
TEST_F(Trust, AGroupMadeItsFileWhereALinkLed) {
  const std::string link = directory_ / "link";
  const std::string target = directory_ / "db.pawl";
  ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
  EXPECT_EQ(pawl_group_open(link.c_str(), nullptr), nullptr);
  EXPECT_EQ(errno, ENOENT) << pawl_last_error();
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(Trust, AHeapMadeItsFileWhereALinkLed) {
  const std::string link = directory_ / "link";
  const std::string target = directory_ / "target";
  ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
  EXPECT_EQ(pawl_heap_open(link.c_str(), nullptr), nullptr);
  EXPECT_EQ(errno, ENOENT) << pawl_last_error();
  EXPECT_FALSE(std::filesystem::exists(target));
  // Where it leads to a file, that is the heap's.
  write_file(target, "");
  pawl_heap* const heap = pawl_heap_open(link.c_str(), nullptr);
  ASSERT_NE(heap, nullptr) << pawl_last_error();
  EXPECT_EQ(pawl_heap_close(heap), 0) << pawl_last_error();
}

TEST_F(Trust, AGroupTakesNoFileOfAnotherUser) {
  const std::string file = shared_file(kOwner, 0777, 0666);
  const std::string group = directory_ / "folder/group";
  EXPECT_EQ(as_user(kOther,
                    [&] {
                      pawl_group* const opened = pawl_group_open(group.c_str(), nullptr);
                      if (opened == nullptr) return 1;
                      const int descriptor = ::open(file.c_str(), O_RDWR);
                      const void* const at =
                          pawl_group_mmap(opened, nullptr, kBytes, PROT_READ | PROT_WRITE,
                                          MAP_ATOMIC, descriptor, 0);
                      const int refused = at == MAP_FAILED ? errno : 0;
                      return pawl_group_close(opened) == 0 ? refused : 2;
                    }),
            EPERM);
  EXPECT_FALSE(std::filesystem::exists(file + ".pawl"));
  EXPECT_EQ(mark_of(file), "");
}

// It was refused to the owner, and to root, for ever.
TEST_F(Trust, AJournalThatAnotherUserOfASharedFolderLeftWasRefused) {
  for (const uid_t user : {kOwner, uid_t{0}, kOther}) {
    for (const bool is_mapped : {false, true}) {
      const std::string file = shared_file(0, 02770, 0660);
      ASSERT_EQ(as_user(kOther, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
      struct stat side{};
      ASSERT_EQ(::stat((file + ".pawl").c_str(), &side), 0);
      ASSERT_EQ(side.st_uid, kOther);
      EXPECT_EQ(as_user(user,
                        [&] {
                          if (!is_mapped) return outcome(pawl_recover(file.c_str()));
                          char* const bytes = map(file);
                          if (bytes == nullptr) return outcome(-1);
                          struct stat own{};
                          ::stat((file + ".pawl").c_str(), &own);
                          // Whose journal it was may go on to write to it.
                          if (user == kOwner && own.st_uid != kOwner) return 98;
                          return outcome(pawl_munmap(bytes, kBytes));
                        }),
                0)
          << user;
      EXPECT_EQ(value_of(file), "b");
      EXPECT_FALSE(std::filesystem::exists(file + ".pawl"));
      EXPECT_EQ(mark_of(file), "");
      std::filesystem::remove_all(directory_ / "folder");
    }
  }
}

// In a folder where each removes only what is its own: the file is recovered, and why its journal
// stays is said.
TEST_F(Trust, AJournalThatItsOwnerAloneMayRemove) {
  const std::string file = shared_file(0, 03777, 0666);
  ASSERT_EQ(as_user(kOther, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), EPERM);
  EXPECT_EQ(value_of(file), "b");
  EXPECT_EQ(mark_of(file), "");
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), EPERM);
  EXPECT_EQ(pawl_recover(file.c_str()), 0) << pawl_last_error();
  EXPECT_FALSE(std::filesystem::exists(file + ".pawl"));
  EXPECT_EQ(value_of(file), "b");
}

// The journal's owner was told to fetch himself.
TEST_F(Trust, AnOwnerWithoutPermissionIsToldHowToGiveIt) {
  const std::string file = shared_file(kOwner, 0755, 0644);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  ASSERT_EQ(::chmod((file + ".pawl").c_str(), 0444), 0);
  EXPECT_EQ(as_user(kOwner,
                    [&] {
                      const long refused = pawl_recover(file.c_str());
                      if (!fails(refused, EACCES, PAWL_ERROR_NO_PERMISSION)) return 1;
                      const std::string text = pawl_last_error();
                      return text.find("chmod u+rw " + file + ".pawl") == std::string::npos ? 2 : 0;
                    }),
            0);
}

TEST_F(Trust, AJournalInADirectoryThatBecameReadOnly) {
  const std::string file = shared_file(kOwner, 0755, 0644);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  ASSERT_EQ(::chmod((directory_ / "folder").c_str(), 0555), 0);
  EXPECT_EQ(as_user(kOwner,
                    [&] {
                      const long refused = pawl_recover(file.c_str());
                      if (!fails(refused, EACCES, PAWL_ERROR_LEFT_BEHIND)) return 1;
                      const std::string text = pawl_last_error();
                      if (text.find("chmod u+w") == std::string::npos) return 2;
                      return text.find("or root may") == std::string::npos ? 0 : 3;
                    }),
            0);
  EXPECT_EQ(value_of(file), "b");
  ASSERT_EQ(::chmod((directory_ / "folder").c_str(), 0755), 0);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), 0);
  EXPECT_FALSE(std::filesystem::exists(file + ".pawl"));
}

// A close answered 0, and left the journal.
TEST_F(Trust, AJournalInADirectoryThatCannotBeSearchedAnyMore) {
  const std::string file = shared_file(kOwner, 0755, 0644);
  const std::string folder = directory_ / "folder";
  EXPECT_EQ(as_user(kOwner,
                    [&] {
                      char* const at = map(file);
                      if (at == nullptr) return 1;
                      at[0] = 'b';
                      if (pawl_msync(at, kBytes, MS_SYNC) != 0) return 2;
                      if (::chmod(folder.c_str(), 0600) != 0) return 3;
                      const int refused = pawl_munmap(at, kBytes);
                      if (!fails(refused, EACCES, PAWL_ERROR_LEFT_BEHIND)) return 4;
                      const std::string text = pawl_last_error();
                      return text.find("chmod u+wx") == std::string::npos ? 5 : 0;
                    }),
            0);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), 0);
  EXPECT_FALSE(std::filesystem::exists(file + ".pawl"));
  EXPECT_EQ(read_file(file)[0], 'b');
}

// It cannot be flushed: the copy was made, got its name, and was then said to have failed.
TEST_F(Trust, ACopyInADirectoryThatMayNotBeReadWasLeftBehind) {
  const std::string file = shared_file(kOwner, 0755, 0644);
  const std::string box = directory_ / "box";
  ASSERT_EQ(::mkdir(box.c_str(), 0755), 0);
  ASSERT_EQ(::chown(box.c_str(), kOwner, kShared), 0);
  const auto refuses = [](long result) {
    if (!fails(result, EACCES, PAWL_ERROR_NO_PERMISSION)) return 1;
    const std::string text = pawl_last_error();
    return text.find("chmod +r") == std::string::npos ? 2 : 0;
  };
  ASSERT_EQ(::chmod(box.c_str(), 0300), 0);
  EXPECT_EQ(
      as_user(kOwner,
              [&] { return refuses(pawl_snapshot(file.c_str(), (box + "/copy").c_str(), 0)); }),
      0);
  EXPECT_TRUE(std::filesystem::is_empty(box));
  ASSERT_EQ(::chmod((directory_ / "folder").c_str(), 0300), 0);
  EXPECT_EQ(as_user(kOwner, [&] { return refuses(map(file) == nullptr ? -1 : 0); }), 0);
  EXPECT_FALSE(std::filesystem::exists(file + ".pawl"));
  EXPECT_EQ(mark_of(file), "");
}

// Who may read the file knows the id in its mark, and may write a journal with it: the mark names
// the other one.
TEST_F(Trust, AJournalWithTheRightIdThatWasPutInThePlaceOfTheOther) {
  const std::string file = shared_file(0, 0777, 0644);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  const std::string journal = file + ".pawl";
  const std::string away = directory_ / "away";
  std::filesystem::rename(journal, away);
  std::filesystem::copy_file(away, journal);
  ASSERT_EQ(::chown(journal.c_str(), kHostile, kHostile), 0);
  EXPECT_EQ(as_user(kOwner,
                    [&] {
                      const long refused = pawl_recover(file.c_str());
                      return fails(refused, EACCES, PAWL_ERROR_JOURNAL_OF_OTHER_USER) ? 0 : 1;
                    }),
            0);
  EXPECT_EQ(pawl_recover(file.c_str()), -1);
  EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
  EXPECT_EQ(value_of(file), "a");
  // Beside a file without a mark it is no better, and stays.
  const std::string mark = mark_of(file);
  ASSERT_EQ(::removexattr(file.c_str(), "user.pawl"), 0);
  EXPECT_EQ(pawl_recover(file.c_str()), -1);
  EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
  EXPECT_EQ(value_of(file), "a");
  ASSERT_EQ(::setxattr(file.c_str(), "user.pawl", mark.data(), mark.size(), 0), 0);
  std::filesystem::rename(away, journal);
  EXPECT_EQ(pawl_recover(file.c_str()), 1) << pawl_last_error();
  EXPECT_EQ(value_of(file), "b");
}

TEST_F(Trust, AJournalThatMoreUsersMayWriteThanTheFile) {
  const std::string file = shared_file(0, 0777, 0644);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  const std::string journal = file + ".pawl";
  for (const mode_t mode : {0660, 0606}) {
    ASSERT_EQ(::chmod(journal.c_str(), mode), 0);
    EXPECT_EQ(pawl_recover(file.c_str()), -1);
    EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
  }
  ASSERT_EQ(::chmod(journal.c_str(), 0600), 0);
  EXPECT_EQ(pawl_recover(file.c_str()), 1) << pawl_last_error();
}

// Behind that a change is seen which costs a system call to see.
void let_it_be_seen() { std::this_thread::sleep_for(std::chrono::nanoseconds(kSeldomNs * 3 / 2)); }

// A list of rights as the kernel takes it, of a file that its owner, `user`, perhaps its group and
// nobody else may read and write; false where the file system has none.
bool give_list(const std::string& path, const char* attribute, uid_t user, std::uint16_t rights,
               std::uint16_t rights_of_group = 0) {
  constexpr std::uint16_t kBoth = ACL_READ | ACL_WRITE;
  return test::give_access_list(path,
                                {{ACL_USER_OBJ, kBoth, test::kNoId},
                                 {ACL_USER, rights, user},
                                 {ACL_GROUP_OBJ, rights_of_group, test::kNoId},
                                 {ACL_MASK, kBoth, test::kNoId},
                                 {ACL_OTHER, 0, test::kNoId}},
                                attribute);
}

// The owner and the group may read and write it, this user not, by name.
bool deny_by_list(const std::string& path, uid_t user) {
  return give_list(path, "system.posix_acl_access", user, 0, 6);
}

int may_open(uid_t user, const std::string& path, int flags) {
  return as_user(user, [&] { return outcome(::open(path.c_str(), flags)); });
}

// That its owner could write the file once was enough: he lost the right, and what he wrote into
// the journal that a crash left him was replayed.
TEST_F(Trust, AJournalOfAUserWhoMayNotWriteTheFileAnyMoreWasBelieved) {
  for (const bool is_handed_over : {false, true}) {
    const std::string file = shared_file(0, 0777, is_handed_over ? 0600 : 0664);
    ASSERT_EQ(::chown(file.c_str(), is_handed_over ? kOther : kOwner, kShared), 0);
    ASSERT_EQ(as_user(kOther, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
    ASSERT_EQ(::chown(file.c_str(), kOwner, kShared), 0);
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
    ASSERT_EQ(::chmod((file + ".pawl").c_str(), 0600), 0);
    EXPECT_EQ(pawl_recover(file.c_str()), -1);
    EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
    EXPECT_NE(std::strstr(pawl_last_error(), "chown"), nullptr) << pawl_last_error();
    EXPECT_EQ(outcome(map(file) == nullptr ? -1 : 0), EBADMSG);
    EXPECT_EQ(outcome(pawl_snapshot(file.c_str(), (file + ".copy").c_str(), 0)), EBADMSG);
    EXPECT_EQ(value_of(file), "a");
    // Who may write it again is believed again, as a user of its list, too.
    if (is_handed_over || !give_list(file, "system.posix_acl_access", kOther, 6)) {
      ASSERT_EQ(::chmod(file.c_str(), 0660), 0);
    }
    EXPECT_EQ(pawl_recover(file.c_str()), 1) << pawl_last_error();
    EXPECT_EQ(value_of(file), "b");
    std::filesystem::remove_all(directory_ / "folder");
  }
}

// A user who had committed was denied the file by name, or his group by the mode: entries that deny
// were not looked at.
TEST_F(Trust, AUserWhomTheListDeniesWasBelieved) {
  const std::string file = shared_file(0, 0777, 0660);
  ASSERT_EQ(as_user(kOther, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  if (!deny_by_list(file, kOther)) GTEST_SKIP() << "this file system has no lists of rights";
  ASSERT_EQ(may_open(kOther, file, O_RDWR), EACCES);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), EBADMSG);
  EXPECT_EQ(value_of(file), "a");
}

TEST_F(Trust, TheOwnersJournalThatADeniedUserMayWriteWasBelieved) {
  const std::string file = shared_file(0, 0777, 0660);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  if (!deny_by_list(file, kOther)) GTEST_SKIP() << "this file system has no lists of rights";
  ASSERT_EQ(may_open(kOther, file + ".pawl", O_RDWR), 0);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), EBADMSG);
  // As the message says.
  ASSERT_EQ(::chmod((file + ".pawl").c_str(), 0600), 0);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), 0);
  EXPECT_EQ(value_of(file), "b");
}

TEST_F(Trust, AGroupThatTheModeDeniesWasBelieved) {
  const std::string file = shared_file(0, 0777, 0666);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  ASSERT_EQ(::chmod(file.c_str(), 0606), 0);
  ASSERT_EQ(may_open(kOther, file, O_RDWR), EACCES);
  ASSERT_EQ(may_open(kOther, file + ".pawl", O_RDWR), 0);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(file.c_str())); }), EBADMSG);
}

// The journal, which this writer may not change, stayed readable for whom the list denies.
TEST_F(Trust, AUserWhomTheListDeniesReadTheCommits) {
  const std::string file = shared_file(0, 0777, 0660);
  const auto commit = [&] {
    char* const at = map(file);
    if (at == nullptr) return outcome(-1);
    at[0] = 'b';
    if (pawl_msync(at, kBytes, MS_SYNC) != 0) return 2;
    if (!deny_by_list(file, kOther)) return 3;
    let_it_be_seen();
    at[0] = 's';
    if (pawl_msync(at, kBytes, MS_SYNC) != 0) return outcome(-1);
    ::raise(SIGKILL);
    return 4;
  };
  const int ended = as_user(kOwner, commit);
  if (ended == 3) GTEST_SKIP() << "this file system has no lists of rights";
  ASSERT_EQ(ended, 128 + SIGKILL);
  EXPECT_EQ(may_open(kOther, file + ".pawl", O_RDONLY), EACCES);
}

// Whoever asks for a file's inode and birth time can make a journal that names it: of a file
// without a mark, which accepts a loss, a stranger's was replayed.
TEST_F(Trust, AStrangersJournalWasReplayedWhereALossWasAccepted) {
  const std::string file = shared_file(0, 0777, 0664);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  const std::string journal = file + ".pawl";
  ASSERT_EQ(::removexattr(file.c_str(), "user.pawl"), 0);
  ASSERT_EQ(::chown(journal.c_str(), kHostile, kHostile), 0);
  ASSERT_EQ(::chmod(journal.c_str(), 0644), 0);
  const auto accept_loss = [&] {
    auto medium = open_block_medium(file, false);
    return medium.ok() ? recover(*medium.value(), true).status() : medium.status();
  };
  EXPECT_EQ(accept_loss().error_number(), EBADMSG);
  EXPECT_EQ(value_of(file), "a");
  ASSERT_EQ(::chown(journal.c_str(), kOwner, kShared), 0);
  EXPECT_TRUE(accept_loss().ok());
  EXPECT_EQ(value_of(file), "b");
}

// The mode has the bound of a list where it has one: the group could write the journal, and could
// not read the file.
TEST_F(Trust, AJournalGotTheBoundOfAListForTheRightsOfTheGroup) {
  const std::string file = shared_file(0, 0777, 0600);
  if (!give_list(file, "system.posix_acl_access", kHostile, 4))
    GTEST_SKIP() << "this file system has no lists of rights";
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  const std::string journal = file + ".pawl";
  EXPECT_EQ(may_open(kOther, journal, O_RDONLY), EACCES);
  EXPECT_EQ(may_open(kHostile, journal, O_RDONLY), 0);
  EXPECT_EQ(may_open(kHostile, journal, O_RDWR), EACCES);
  const std::string copy = directory_ / "folder/copy";
  EXPECT_EQ(pawl_snapshot(file.c_str(), copy.c_str(), 0), 0) << pawl_last_error();
  EXPECT_EQ(may_open(kOther, copy, O_RDONLY), EACCES);
  EXPECT_EQ(may_open(kHostile, copy, O_RDWR), EACCES);
  // One that names more users than the file is not believed.
  ASSERT_TRUE(give_list(journal, "system.posix_acl_access", kHostile, 6));
  EXPECT_EQ(pawl_recover(file.c_str()), -1);
  EXPECT_EQ(errno, EBADMSG) << pawl_last_error();
}

// The journal belongs to whoever opened the file, and its owner was in no class that it granted
// anything.
TEST_F(Trust, TheOwnerWasShutOutByTheJournalThatAnotherUserLeft) {
  const std::string file = shared_file(0, 0777, 0600);
  if (!give_list(file, "system.posix_acl_access", kHostile, 6))
    GTEST_SKIP() << "this file system has no lists of rights";
  ASSERT_EQ(as_user(kHostile, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  EXPECT_EQ(may_open(kOther, file + ".pawl", O_RDONLY), EACCES);
  EXPECT_EQ(as_user(kOwner, [&] { return pawl_recover(file.c_str()) == 1 ? 0 : 1; }), 0);
  EXPECT_EQ(value_of(file), "b");
}

// The folder's list for new files was taken over by the journal, and opened by its mode.
TEST_F(Trust, AJournalInheritedAListFromItsFolder) {
  const std::string file = shared_file(0, 0777, 0660);
  if (!give_list(directory_ / "folder", "system.posix_acl_default", kHostile, 6))
    GTEST_SKIP() << "this file system has no lists of rights";
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  EXPECT_EQ(may_open(kHostile, file + ".pawl", O_RDONLY), EACCES);
  EXPECT_EQ(pawl_recover(file.c_str()), 1) << pawl_last_error();
}

// A file was made private, and its journal, which a crash had left, stayed as it was.
TEST_F(Trust, TheJournalOfAFileThatWasMadePrivateCouldBeRead) {
  for (const uid_t opener : {uid_t{0}, kOwner}) {
    const std::string file = directory_ / ("db" + std::to_string(opener));
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
    write_file(file, std::string(kBytes, 'a'));
    ASSERT_EQ(::chown(file.c_str(), kOwner, kShared), 0);
    ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
    ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
    ASSERT_EQ(as_user(opener, [&] { return commit_and_die(file, 'c'); }), 128 + SIGKILL);
    EXPECT_EQ(may_open(kHostile, file + ".pawl", O_RDONLY), EACCES);
    EXPECT_EQ(pawl_recover(file.c_str()), 1) << pawl_last_error();
    EXPECT_EQ(value_of(file), "c");
  }
}

// The journal's rights were those that the file had when it was opened, and told others of every
// later commit.
TEST_F(Trust, AFileThatWasMadePrivateWhileItWasMappedToldItsCommits) {
  const std::string file = shared_file(kOwner, 0755, 0644);
  EXPECT_EQ(as_user(kOwner,
                    [&] {
                      char* const at = map(file);
                      if (at == nullptr || ::chmod(file.c_str(), 0600) != 0) return 1;
                      at[0] = 's';
                      if (pawl_msync(at, kBytes, MS_SYNC) != 0) return 2;
                      struct stat journal{};
                      if (::stat((file + ".pawl").c_str(), &journal) != 0) return 3;
                      if ((journal.st_mode & 0077) != 0) return 4;
                      if (::chmod(file.c_str(), 0644) != 0) return 5;
                      at[0] = 't';
                      if (pawl_msync(at, kBytes, MS_SYNC) != 0) return 6;
                      return ::stat((file + ".pawl").c_str(), &journal) == 0 &&
                                     (journal.st_mode & 0777) == 0644
                                 ? 0
                                 : 7;
                    }),
            0);
}

// A commit in memory makes no system call, and never looked.
TEST_F(Trust, AFileInMemoryThatWasMadePrivateToldItsCommits) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "there is no /dev/shm";
  const TemporaryDirectory memory("/dev/shm");
  ASSERT_EQ(::chmod(memory.path().c_str(), 0777), 0);
  const std::string file = memory / "db";
  write_file(file, std::string(kBytes, 'a'));
  ASSERT_EQ(::chown(file.c_str(), kOwner, kShared), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const auto commit = [&] {
    ::setenv("PAWL_MEDIUM", "memory", 1);
    char* const at = map(file);
    if (at == nullptr) return outcome(-1);
    at[0] = 'b';
    if (pawl_msync(at, kBytes, MS_SYNC) != 0) return 2;
    if (::chmod(file.c_str(), 0600) != 0) return 3;
    let_it_be_seen();
    at[0] = 's';
    if (pawl_msync(at, kBytes, MS_SYNC) != 0) return outcome(-1);
    ::raise(SIGKILL);
    return 4;
  };
  EXPECT_EQ(as_user(kOwner, commit), 128 + SIGKILL);
  EXPECT_EQ(may_open(kHostile, file + ".pawl", O_RDONLY), EACCES);
  EXPECT_EQ(pawl_recover(file.c_str()), 2) << pawl_last_error();
}

// The list changed, and the mode, which has but its bound, did not.
TEST_F(Trust, AUserWhomTheListOfAMappedFileNamesNoMoreReadItsCommits) {
  const std::string file = shared_file(0, 0777, 0600);
  if (!give_list(file, "system.posix_acl_access", kHostile, 4))
    GTEST_SKIP() << "this file system has no lists of rights";
  const auto commit = [&] {
    char* const at = map(file);
    if (at == nullptr) return outcome(-1);
    at[0] = 'b';
    if (pawl_msync(at, kBytes, MS_SYNC) != 0) return 2;
    if (!give_list(file, "system.posix_acl_access", kOther, 4)) return 3;
    let_it_be_seen();
    at[0] = 's';
    if (pawl_msync(at, kBytes, MS_SYNC) != 0) return outcome(-1);
    ::raise(SIGKILL);
    return 4;
  };
  ASSERT_EQ(as_user(kOwner, commit), 128 + SIGKILL);
  EXPECT_EQ(may_open(kHostile, file + ".pawl", O_RDONLY), EACCES);
  EXPECT_EQ(may_open(kOther, file + ".pawl", O_RDONLY), 0);
}

// The file's group may not read it, and everybody else may: the journal could not have that group,
// so that its members were of everybody else.
TEST_F(Trust, AGroupThatIsDeniedTheFileCouldReadItsJournal) {
  const std::string file = shared_file(kOwner, 0755, 0604);
  constexpr gid_t kGroupOfNone = 4321;
  ASSERT_EQ(::chown(file.c_str(), kOwner, kGroupOfNone), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0604), 0);
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  struct stat journal{};
  ASSERT_EQ(::stat((file + ".pawl").c_str(), &journal), 0);
  EXPECT_NE(journal.st_gid, kGroupOfNone);
  EXPECT_EQ(journal.st_mode & 0777, 0600u);
}

// A copy of a whole file system has the same inode numbers and birth times: the journal that its
// marks name by their paths is the original's, and was to be moved to the copy, or emptied for it.
TEST_F(Trust, TheJournalOfTheOriginalWasTakenForThatOfAClonedFileSystem) {
  constexpr int kCannotMount = 50;
  const auto shell = [&](const std::string& command) {
    return std::system(
               ("cd '" + directory_.path().string() + "' && exec 2> /dev/null && " + command)
                   .c_str()) == 0;
  };
  const std::string original = directory_ / "a/db";
  const std::string clone = directory_ / "b/db";
  const int ended = as_user(0, [&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        !shell("mkdir a b && truncate -s 64M a.img && mkfs.ext4 -q -F -I 256 a.img && "
               "mount -o loop a.img a"))
      return kCannotMount;
    write_file(original, std::string(kBytes, 'a'));
    if (as_user(0, [&] { return commit_and_die(original, 'b'); }) != 128 + SIGKILL) return 1;
    if (!shell("umount a && cp a.img b.img && mount -o loop a.img a && mount -o loop b.img b && "
               "rm b/db.pawl"))
      return kCannotMount;
    if (pawl_recover(clone.c_str()) != -1 || errno != ENODATA) return 2;
    if (std::strstr(pawl_last_error(), "Nothing is lost") != nullptr) return 3;
    const auto medium = open_block_medium(clone, false);
    const auto mark = medium.ok() ? medium.value()->mark() : medium.status();
    if (!mark.ok() || !mark.value().has_value()) return 4;
    if (!journal::check_is_lost(*medium.value(), *mark.value()).ok()) return 5;
    if (pawl_recover(original.c_str()) != 1) return 6;
    return value_of(original) == "b" ? 0 : 7;
  });
  if (ended == kCannotMount) GTEST_SKIP() << "this user cannot mount, or there is no mkfs.ext4";
  EXPECT_EQ(ended, 0);
}

// The owner of the folder put a link in its place while root opened the file: the journal, which is
// the user's, was made where the link led.
TEST_F(Trust, AJournalWasMadeWhereALinkLed) {
  const std::string file = shared_file(kHostile, 0755, 0644);
  const std::string folder = directory_ / "folder";
  const std::string away = directory_ / "away";
  const std::string of_root = directory_ / "root";
  ASSERT_EQ(::mkdir(of_root.c_str(), 0755), 0);
  auto medium = open_block_medium(file, false);
  ASSERT_TRUE(medium.ok()) << medium.status().text();
  std::filesystem::rename(folder, away);
  std::filesystem::create_symlink(of_root, folder);
  ASSERT_TRUE(medium.value()->acquire_journal(true).ok());
  EXPECT_TRUE(medium.value()->publish_journal().ok());
  EXPECT_TRUE(std::filesystem::is_empty(of_root));
  EXPECT_TRUE(std::filesystem::exists(away + "/db.pawl"));
  write_file(of_root + "/db.pawl", "another's");
  EXPECT_TRUE(medium.value()->remove_journal().ok());
  EXPECT_FALSE(std::filesystem::exists(away + "/db.pawl"));
  EXPECT_TRUE(std::filesystem::exists(of_root + "/db.pawl"));
}

// Who recovers a file of another user gives up its journal where it was, wherever a link leads that
// was put there meanwhile.
TEST_F(Trust, AJournalThatWasGivenUpWasThatOfAnotherDirectory) {
  for (const Kept kept : {Kept::itself, Kept::copy}) {
    const TemporaryDirectory directory;
    const std::string folder = directory / "folder";
    const std::string away = directory / "away";
    const std::string of_root = directory / "root";
    for (const auto& made : {folder, of_root}) ASSERT_EQ(::mkdir(made.c_str(), 0755), 0);
    write_file(folder + "/db", std::string(kBytes, 'a'));
    write_file(folder + "/db.pawl", "damaged");
    for (const auto& name : {folder + "/db", folder + "/db.pawl"})
      ASSERT_EQ(::chown(name.c_str(), kOwner, kShared), 0);
    auto medium = open_block_medium(folder + "/db", false);
    ASSERT_TRUE(medium.ok()) << medium.status().text();
    ASSERT_TRUE(medium.value()->acquire_journal(false).ok());
    std::filesystem::rename(folder, away);
    std::filesystem::create_symlink(of_root, folder);
    write_file(of_root + "/db.pawl", "another's");
    auto kept_as = medium.value()->keep_journal_aside(kept);
    ASSERT_TRUE(kept_as.ok()) << kept_as.status().text();
    EXPECT_EQ(read_file(of_root + "/db.pawl"), "another's");
    EXPECT_FALSE(std::filesystem::exists(of_root + "/db.pawl.damaged"));
    EXPECT_EQ(read_file(away + "/db.pawl.damaged"), "damaged");
    EXPECT_EQ(std::filesystem::exists(away + "/db.pawl"), kept == Kept::copy);
    // What took its place is not the journal that was looked at.
    std::filesystem::remove(away + "/db.pawl");
    write_file(away + "/db.pawl", "another");
    const Status refused = medium.value()->keep_journal_aside(kept).status();
    EXPECT_EQ(refused.error_number(), ESTALE);
    EXPECT_EQ(refused.code(), PAWL_ERROR_REPLACED);
  }
}

// Runs `work` as this user in a user namespace that shows this user alone.
int alone_in_user_namespace(uid_t user, uid_t shown_as, const std::function<int()>& work) {
  constexpr int kNoNamespace = 77;
  std::array<int, 2> made{};
  std::array<int, 2> mapped{};
  EXPECT_TRUE(::pipe(made.data()) == 0 && ::pipe(mapped.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::alarm(60);
    if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
        ::setresuid(user, user, user) != 0 || ::unshare(CLONE_NEWUSER) != 0)
      ::_exit(kNoNamespace);
    if (::write(made[1], &byte, 1) != 1 || ::read(mapped[0], &byte, 1) != 1) ::_exit(98);
    ::_exit(work());
  }
  ::close(made[1]);
  char byte = 0;
  if (::read(made[0], &byte, 1) == 1) {
    const std::string map = std::to_string(shown_as) + " " + std::to_string(user) + " 1";
    for (const char* const which : {"uid_map", "gid_map"})
      write_file("/proc/" + std::to_string(child) + "/" + which, map);
  }
  EXPECT_EQ(::write(mapped[1], &byte, 1), 1);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  for (const int end : {made[0], mapped[0], mapped[1]}) ::close(end);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// In a user namespace all users who have no number there have the same: the journal of a stranger
// was taken for that of the file's owner, and got the commits.
TEST_F(Trust, AStrangersJournalWasTakenForTheOwnersInAUserNamespace) {
  constexpr uid_t kWriter = 51004;
  const std::string file = shared_file(0, 01777, 0600);
  const std::string journal = file + ".pawl";
  if (!give_list(file, "system.posix_acl_access", kWriter, 6))
    GTEST_SKIP() << "this file system has no lists of rights";
  char value = 'c';
  for (const uid_t shown_as : {kWriter, uid_t{0}}) {
    value += 1;
    ASSERT_TRUE(test::make_empty_journal(file));
    ASSERT_EQ(::chown(journal.c_str(), kHostile, kHostile), 0);
    ASSERT_TRUE(give_list(journal, "system.posix_acl_access", kWriter, 6));
    const int ended =
        alone_in_user_namespace(kWriter, shown_as, [&] { return commit_and_die(file, 'b'); });
    if (ended == 77) GTEST_SKIP() << "no user namespaces here";
    EXPECT_NE(ended, 128 + SIGKILL);
    EXPECT_EQ(read_file(journal).find("bbbb"), std::string::npos);
    ASSERT_EQ(::unlink(journal.c_str()), 0);
    // Without it the user works as anywhere, also as root of the namespace.
    EXPECT_EQ(
        alone_in_user_namespace(kWriter, shown_as, [&] { return commit_and_die(file, value); }),
        128 + SIGKILL);
    // (The file's owner has no number there, and could be given no right to it.)
    EXPECT_EQ(pawl_recover(file.c_str()), 1) << pawl_last_error();
    EXPECT_EQ(value_of(file), std::string(1, value));
  }
}

// A close in a chroot answered 0 and left the journal.
TEST_F(Trust, ACloseInAChrootLeftTheJournal) {
  const std::string file = shared_file(0, 0755, 0644);
  EXPECT_EQ(as_user(0,
                    [&] {
                      char* const at = map(file);
                      if (at == nullptr || ::chroot((directory_ / "folder").c_str()) != 0) return 1;
                      at[0] = 'b';
                      return pawl_munmap(at, kBytes) == 0 ? 0 : 2;
                    }),
            0);
  EXPECT_FALSE(std::filesystem::exists(file + ".pawl"));
}

std::string rights_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  char list[4096];
  const ssize_t length = ::getxattr(path.c_str(), "system.posix_acl_access", list, sizeof list);
  char text[64];
  std::snprintf(text, sizeof text, "%u:%u %o", status.st_uid, status.st_gid,
                status.st_mode & 07777u);
  return text + (length < 0 ? std::string() : std::string(list, static_cast<std::size_t>(length)));
}

// The mark of an opening was believed for whatever journal it names by numbers that anybody can ask
// for: recovery wrote the commits of a private file into that of another user, and removed them.
TEST_F(Trust, AJournalWasStolenWithTheMarkOfAnOpening) {
  const std::string file = shared_file(0, 0777, 0600);
  const std::string journal = file + ".pawl";
  const std::string bait = directory_ / "folder/bait";
  const std::string zeros(32, '0');
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  for (const std::string& recovered : {std::string(), zeros + " "}) {
    ASSERT_EQ(as_user(kHostile,
                      [&] {
                        write_file(bait, std::string(kBytes, 'x'));
                        const std::string mark = "2 " + zeros + " opening " + identity_of(bait) +
                                                 " " + identity_of(journal) + " " + recovered +
                                                 bait + ".pawl";
                        return ::chmod(bait.c_str(), 0666) == 0 &&
                                       ::rename(journal.c_str(), (bait + ".pawl").c_str()) == 0
                                   ? outcome(::setxattr(bait.c_str(), "user.pawl", mark.data(),
                                                        mark.size(), 0))
                                   : 1;
                      }),
              0);
    const std::string before = rights_of(bait + ".pawl");
    for (const uid_t user : {kOwner, uid_t{0}}) {
      EXPECT_EQ(as_user(user, [&] { return outcome(pawl_recover(bait.c_str())); }), EBADMSG);
      EXPECT_EQ(as_user(user, [&] { return map(bait) == nullptr ? errno : 0; }), EBADMSG);
      EXPECT_EQ(value_of(bait), "x");
    }
    EXPECT_EQ(rights_of(bait + ".pawl"), before);
    std::filesystem::rename(bait + ".pawl", journal);
    std::filesystem::remove(bait);
  }
  EXPECT_EQ(as_user(kOwner, [&] { return pawl_recover(file.c_str()) == 1 ? 0 : 1; }), 0);
  EXPECT_EQ(value_of(file), "b");
}

// Whatever has the name of a journal got the owner and the rights of the file, and then it was
// refused.
TEST_F(Trust, WhatIsNoJournalGotTheRightsOfTheFile) {
  for (const uid_t user : {kHostile, kOwner}) {
    const std::string file = shared_file(user, 0777, 0644);
    const std::string secret = file + ".pawl";
    ASSERT_EQ(::chown(file.c_str(), user, user), 0);
    ASSERT_EQ(as_user(user == kHostile ? uid_t{0} : user,
                      [&] {
                        write_file(secret, "a secret");
                        return outcome(::chmod(secret.c_str(), 0600));
                      }),
              0);
    const std::string before = rights_of(secret);
    for (const uid_t opener : {uid_t{0}, user}) {
      if (user == kHostile && opener != 0) continue;
      EXPECT_EQ(as_user(opener, [&] { return outcome(pawl_recover(file.c_str())); }), EBADMSG);
      EXPECT_EQ(as_user(opener, [&] { return map(file) == nullptr ? errno : 0; }), EBADMSG);
    }
    EXPECT_EQ(rights_of(secret), before);
    std::filesystem::remove_all(directory_ / "folder");
  }
}

TEST_F(Trust, TheJournalOfAPrivateFileGotTheRightsOfAnotherFile) {
  const std::string file = shared_file(0, 0777, 0600);
  const std::string bait = directory_ / "folder/bait";
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  ASSERT_EQ(as_user(kHostile,
                    [&] {
                      write_file(bait, std::string(kBytes, 'x'));
                      return outcome(::chmod(bait.c_str(), 0666));
                    }),
            0);
  std::filesystem::rename(file + ".pawl", bait + ".pawl");
  const std::string before = rights_of(bait + ".pawl");
  for (const uid_t user : {kOwner, uid_t{0}}) {
    EXPECT_EQ(as_user(user, [&] { return outcome(pawl_recover(bait.c_str())); }), EBADMSG);
    EXPECT_EQ(as_user(user, [&] { return map(bait) == nullptr ? errno : 0; }), EBADMSG);
    EXPECT_EQ(rights_of(bait + ".pawl"), before);
  }
  std::filesystem::rename(bait + ".pawl", file + ".pawl");
  EXPECT_EQ(pawl_recover(file.c_str()), 1) << pawl_last_error();
}

// A user who may not write the journal of an opening that died cannot empty it, and must not leave
// it for the day when the file has its old name again.
TEST_F(Trust, AJournalOfAnOpeningThatDiedStandsWhereTheUserMayNotWrite) {
  const std::string file = shared_file(0, 0777, 0666);
  const std::string other = directory_ / "folder/other";
  ASSERT_EQ(as_user(kOwner, [&] { return commit_and_die(file, 'b'); }), 128 + SIGKILL);
  {
    auto medium = open_block_medium(file, false);
    auto opened = recovered_journal(*medium.value());
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    ASSERT_TRUE(medium.value()->claim(JournalId{}, opened.value().replayed.journal_id).ok());
  }
  ASSERT_EQ(::chmod((file + ".pawl").c_str(), 0600), 0);
  std::filesystem::rename(file, other);
  EXPECT_EQ(as_user(kHostile,
                    [&] {
                      const long refused = pawl_recover(other.c_str());
                      if (!fails(refused, EACCES, PAWL_ERROR_JOURNAL_OF_OTHER_USER)) return 1;
                      return std::strstr(pawl_last_error(), "/db.pawl") != nullptr ? 0 : 2;
                    }),
            0);
  EXPECT_EQ(as_user(kHostile, [&] { return map(other) == nullptr ? errno : 0; }), EACCES);
  EXPECT_EQ(as_user(kOwner, [&] { return outcome(pawl_recover(other.c_str())); }), 0);
  EXPECT_FALSE(std::filesystem::exists(file + ".pawl"));
  EXPECT_EQ(value_of(other), "b");
}

// The file's group may read it, nobody else may: the journal, which could not get the file's new
// group, let the old one read what was committed since.
TEST_F(Trust, TheFirstGroupOfAFileReadTheCommitsBehindItsSecond) {
  const std::string file = shared_file(kOwner, 0755, 0640);
  constexpr gid_t kSecond = 4321;
  EXPECT_EQ(as_user(0,
                    [&] {
                      char* const at = map(file);
                      if (at == nullptr || ::setresgid(kOther, kOther, kOther) != 0) return 1;
                      const int changed = ::open(file.c_str(), O_RDONLY);
                      if (::fchown(changed, kOwner, kSecond) != 0 || ::setgroups(0, nullptr) != 0 ||
                          ::setresuid(kOther, kOther, kOther) != 0)
                        return 2;
                      at[0] = 's';
                      const int refused = pawl_msync(at, kBytes, MS_SYNC);
                      return fails(refused, EACCES, PAWL_ERROR_JOURNAL_TOO_READABLE) ? 0 : 3;
                    }),
            0);
}

// While it was mapped its owner took the right to write from everybody: the journal got that mode,
// and the owner was shut out of it.
TEST_F(Trust, AFileThatWasMadeReadOnlyWhileItWasMappedShutItsOwnerOut) {
  const std::string file = shared_file(kOwner, 0755, 0644);
  EXPECT_EQ(as_user(kOwner,
                    [&] {
                      char* const at = map(file);
                      if (at == nullptr || ::chmod(file.c_str(), 0444) != 0) return 1;
                      at[0] = 's';
                      if (pawl_msync(at, kBytes, MS_SYNC) != 0) return 2;
                      struct stat journal{};
                      if (::stat((file + ".pawl").c_str(), &journal) != 0) return 3;
                      if ((journal.st_mode & 0777) != 0644) return 4;
                      // The mark is an attribute of the file.
                      const int unmapped = pawl_munmap(at, kBytes);
                      if (!fails(unmapped, EACCES, PAWL_ERROR_LEFT_BEHIND)) return 5;
                      if (std::strstr(pawl_last_error(), "chmod u+w") == nullptr) return 6;
                      if (::chmod(file.c_str(), 0644) != 0) return 7;
                      return outcome(pawl_recover(file.c_str()));
                    }),
            0);
  EXPECT_EQ(read_file(file).substr(0, 1), "s");
}

}  // namespace
}  // namespace pawl
