// Programs under the preload face that read a file which another process commits to: each sees one
// committed state, for as long as it has the file open.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "snapshot/writer.h"
#include "support/temporary_directory.h"

namespace pawl::test {
namespace {

constexpr int kReaders = 4;
constexpr int kReadings = 10;

// Under the face, or without it.
int read_once(const std::string& path, std::uint64_t& generation, bool under_face = true) {
  const std::string face = std::string("PAWL_ATOMIC=file LD_PRELOAD=") + PAWL_PRELOAD + " ";
  const std::string command =
      (under_face ? face : std::string()) + SNAPSHOT_READER + " " + path + " 2>&1";
  std::FILE* const answer = ::popen(command.c_str(), "r");
  char line[512] = "";
  [[maybe_unused]] const char* const got = std::fgets(line, sizeof line, answer);
  const int status = ::pclose(answer);
  generation = std::strtoull(line, nullptr, 10);
  if (status != 0 && under_face) ADD_FAILURE() << line;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void read_while_written(const std::string& directory, const WriterOptions& options) {
  const std::string path = directory + "/file";
  const Writer writer(path, options);
  writer.wait_for_more_than(0);
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      for (int reading = 0; reading < kReadings; ++reading) {
        const std::uint64_t before = writer.acknowledged();
        std::uint64_t generation = 0;
        ASSERT_EQ(read_once(path, generation), 0);
        EXPECT_GE(generation, before);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
}

TEST(Readers, EachSeesOneState) {
  for (const int apply : {0, 1}) {
    const TemporaryDirectory directory;
    read_while_written(directory.path(), {.apply = apply});
  }
}

TEST(Readers, EachSeesOneStateOfAFileInMemory) {
  const TemporaryDirectory directory("/dev/shm");
  read_while_written(directory.path(), {.medium = 2});
}

TEST(Readers, EachSeesOneStateOfLargeCommits) {
  const TemporaryDirectory directory;
  read_while_written(directory.path(), {.large_every = 6});
}

// What the copies are for: without the face a reader meets the file in the middle of a commit.
TEST(Readers, WithoutTheFaceTheySeeTheFileAsItIsApplied) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  const Writer writer(path, {.apply = 1});
  writer.wait_for_more_than(0);
  int torn = 0;
  for (int reading = 0; reading < 1000 && torn == 0; ++reading) {
    std::uint64_t generation = 0;
    torn += read_once(path, generation, false) == 2 ? 1 : 0;
  }
  EXPECT_GT(torn, 0);
}

}  // namespace
}  // namespace pawl::test

int main(int argc, char** argv) {
  pawl::test::be_a_writer_if_asked(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
