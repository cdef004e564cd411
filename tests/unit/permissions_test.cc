// Who may do more with one file than with another, by their modes and lists: compared with the
// kernel's own answers.
#include "medium/permissions.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/access_list.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

constexpr uid_t kOwner = 51001;
constexpr uid_t kNamed = 51002;
constexpr uid_t kUnnamed = 51003;
constexpr gid_t kOneGroup = 52001;
constexpr gid_t kOtherGroup = 52002;
constexpr std::uint16_t kAll = 6;

// What users and groups a list names; -1: it does not.
struct Names {
  int user = -1;
  int group = -1;
};

struct Subject {
  uid_t user;
  std::vector<gid_t> groups;
};

class Permissions : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "to be several users takes root";
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  }

  // Of the second group alone where `of_other_group`; a list only if it names somebody.
  void make(bool of_other_group, std::uint16_t group, std::uint16_t others, std::uint16_t mask,
            Names names) {
    const std::string path = directory_ / std::to_string(paths_.size());
    test::write_file(path, "x");
    ASSERT_EQ(::chown(path.c_str(), kOwner, of_other_group ? kOtherGroup : kOneGroup), 0);
    const auto mode = static_cast<mode_t>(0600 | group << 3 | others);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    std::vector<test::AccessLine> lines = {{ACL_USER_OBJ, kAll, test::kNoId}};
    if (names.user >= 0)
      lines.push_back({ACL_USER, static_cast<std::uint16_t>(names.user), kNamed});
    lines.push_back({ACL_GROUP_OBJ, group, test::kNoId});
    if (names.group >= 0)
      lines.push_back({ACL_GROUP, static_cast<std::uint16_t>(names.group), kOneGroup});
    lines.push_back({ACL_MASK, mask, test::kNoId});
    lines.push_back({ACL_OTHER, others, test::kNoId});
    if (names.user >= 0 || names.group >= 0) {
      has_lists_ = test::give_access_list(path, lines);
      if (!has_lists_) return;
    }
    paths_.push_back(path);
  }

  // All small ones.
  void make_files() {
    for (const bool of_other_group : {false, true}) {
      for (const std::uint16_t group : {std::uint16_t{0}, kAll}) {
        for (const std::uint16_t others : {std::uint16_t{0}, kAll}) {
          make(of_other_group, group, others, kAll, {});
          for (const std::uint16_t mask : {std::uint16_t{0}, std::uint16_t{1}, kAll}) {
            for (const int user : {-1, 0, int{kAll}}) {
              for (const int named_group : {-1, 0, int{kAll}}) {
                if (user < 0 && named_group < 0) continue;
                make(of_other_group, group, others, mask, {user, named_group});
                if (!has_lists_) return;
              }
            }
          }
        }
      }
    }
  }

  // What the kernel answers to an open() of each, for writing.
  std::vector<bool> answers_to(const Subject& subject) const {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgroups(subject.groups.size(), subject.groups.data()) != 0 ||
          ::setresgid(subject.user, subject.user, subject.user) != 0 ||
          ::setresuid(subject.user, subject.user, subject.user) != 0)
        ::_exit(1);
      for (const std::string& path : paths_) {
        const char may = ::open(path.c_str(), O_WRONLY | O_CLOEXEC) >= 0 ? 1 : 0;
        if (::write(ends[1], &may, 1) != 1) ::_exit(2);
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    std::vector<bool> answers;
    char may = 0;
    while (::read(ends[0], &may, 1) == 1) answers.push_back(may != 0);
    ::close(ends[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return answers;
  }

  std::vector<Rights> rights_of_all() const {
    std::vector<Rights> all;
    for (const std::string& path : paths_) {
      const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      const auto rights = rights_of_file(file, path);
      EXPECT_TRUE(rights.ok()) << rights.status().text();
      if (rights.ok()) all.push_back(rights.value());
      ::close(file);
    }
    return all;
  }

  const test::TemporaryDirectory directory_;
  std::vector<std::string> paths_;
  bool has_lists_ = true;
};

// Entries that deny were not looked at, nor lists where the other file had none.
TEST_F(Permissions, AUserWhomTheKernelKeepsOutOfOneFileOnlyWasNotSeen) {
  make_files();
  if (!has_lists_) GTEST_SKIP() << "this file system has no lists of rights";
  std::vector<std::vector<bool>> kernel;
  for (const uid_t user : {kNamed, kUnnamed}) {
    for (const std::vector<gid_t>& groups :
         std::vector<std::vector<gid_t>>{{}, {kOneGroup}, {kOtherGroup}, {kOneGroup, kOtherGroup}})
      kernel.push_back(answers_to({user, groups}));
  }
  const std::vector<Rights> rights = rights_of_all();
  ASSERT_EQ(rights.size(), paths_.size());
  std::size_t wrong = 0;
  for (std::size_t one = 0; one < rights.size(); ++one) {
    for (std::size_t than = 0; than < rights.size(); ++than) {
      bool has_intruder = false;
      for (const auto& answers : kernel) has_intruder |= answers[one] && !answers[than];
      for (const std::uint16_t right : {std::uint16_t{ACL_READ}, std::uint16_t{ACL_WRITE}}) {
        const bool is_found =
            find_intruder(rights[one], rights[than], right, HiddenIds::may_differ).has_value();
        if (is_found != has_intruder && ++wrong < 10) ADD_FAILURE() << one << " than " << than;
      }
    }
  }
  EXPECT_EQ(wrong, 0u);
}

// For a user of whom only the number is known, and not the groups.
TEST_F(Permissions, AUserWhomAListDeniesTheFileWasSaidToMayWriteIt) {
  make_files();
  if (!has_lists_) GTEST_SKIP() << "this file system has no lists of rights";
  const std::vector<Rights> rights = rights_of_all();
  ASSERT_EQ(rights.size(), paths_.size());
  for (const uid_t user : {kNamed, kUnnamed}) {
    std::vector<std::vector<bool>> kernel;
    for (const std::vector<gid_t>& groups :
         std::vector<std::vector<gid_t>>{{}, {kOneGroup}, {kOtherGroup}, {kOneGroup, kOtherGroup}})
      kernel.push_back(answers_to({user, groups}));
    for (std::size_t file = 0; file < rights.size(); ++file) {
      bool may_ever = false;
      bool may_always = true;
      for (const auto& answers : kernel) {
        may_ever |= answers[file];
        may_always &= answers[file];
      }
      const MayWrite told = may_write(rights[file], user);
      EXPECT_EQ(told == MayWrite::yes, may_always) << file;
      if (!may_ever) {
        EXPECT_EQ(told, MayWrite::no) << file;
      }
    }
  }
}

// The journal of a file of which some group may do nothing but execute: its list would not have
// been asked.
TEST_F(Permissions, WhatTookOverTheRightsOfAFileLetMoreUsersIn) {
  make_files();
  if (!has_lists_) GTEST_SKIP() << "this file system has no lists of rights";
  const std::string path = directory_ / "taker";
  for (const std::string& from : paths_) {
    test::write_file(path, "x");
    const int file = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
    const int taker = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_TRUE(adopt_permissions(file, taker, 0666, path, 0600).ok()) << from;
    EXPECT_FALSE(grants_more(taker, file)) << from;
    ::close(file);
    ::close(taker);
    ::unlink(path.c_str());
  }
}

}  // namespace
}  // namespace pawl
