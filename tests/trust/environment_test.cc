// Whose environment counts.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "support/temporary_directory.h"

namespace pawl::test {
namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::array<char, 128> line{};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return {};
  return line.data();
}

constexpr const char* kSet = "PAWL_JOURNAL_SIZE=1M ";

// The variables of a user who has fewer rights decided what a set-group-ID program does.
TEST(Environment, IsNotBelievedInAProgramWithRaisedPrivileges) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another group";
  ASSERT_EQ(output_of(std::string(kSet) + PAWL_SETTING_PROGRAM), "1048576\n");
  const std::string by_default = output_of(PAWL_SETTING_PROGRAM);

  const TemporaryDirectory directory;
  const std::string program = directory / "raised";
  std::filesystem::copy_file(PAWL_SETTING_PROGRAM, program);
  ASSERT_EQ(::chown(program.c_str(), 0, 65534), 0);
  ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  EXPECT_EQ(output_of(kSet + program), by_default);
}

}  // namespace
}  // namespace pawl::test
