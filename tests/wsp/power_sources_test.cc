// Each source of a power failure is heard, and what is none is not.
#include "wsp/power/power_sources.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace pawl::wsp {
namespace {

constexpr int kWaitMsMax = 30'000;

PowerSources opened(const PowerSourceOptions& options) {
  Result<PowerSources> sources = PowerSources::open(options);
  EXPECT_TRUE(sources.ok()) << sources.status().text();
  return std::move(sources.value());
}

// What is heard once there is something to hear.
std::optional<PowerWord::Source> heard(PowerSources& sources) {
  pollfd wanted{sources.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, kWaitMsMax), 1);
  const auto word = sources.listen();
  EXPECT_TRUE(word.ok()) << word.status().text();
  if (!word.ok() || !word.value().has_value()) return std::nullopt;
  EXPECT_GT(word.value()->heard_ns, 0U);
  return word.value()->source;
}

bool is_quiet(const PowerSources& sources) {
  pollfd wanted{sources.descriptor(), POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 0;
}

void write_text(int descriptor, std::string_view text) {
  ASSERT_EQ(::write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// The two ends of a line without wires.
struct Line {
  Descriptor microcontroller;
  std::string device;
};

Line make_line() {
  Descriptor made(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> name{};
  EXPECT_TRUE(made.valid());
  EXPECT_EQ(::grantpt(made.get()), 0);
  EXPECT_EQ(::unlockpt(made.get()), 0);
  EXPECT_EQ(::ptsname_r(made.get(), name.data(), name.size()), 0);
  return {std::move(made), name.data()};
}

TEST(PowerSources, HearSigpwr) {
  PowerSources sources = opened({});
  EXPECT_TRUE(is_quiet(sources));
  ASSERT_EQ(::kill(::getpid(), SIGPWR), 0);
  EXPECT_EQ(heard(sources), PowerWord::Source::kSignal);
  EXPECT_TRUE(is_quiet(sources));
}

TEST(PowerSources, HearTheHook) {
  const test::TemporaryDirectory directory;
  PowerSources sources = opened({directory / "power", ""});
  ASSERT_TRUE(tell_power_failing(directory / "power").ok());
  EXPECT_EQ(heard(sources), PowerWord::Source::kPipe);
  EXPECT_TRUE(is_quiet(sources));
}

TEST(PowerSources, HearALineThatAShellWritesInPieces) {
  const test::TemporaryDirectory directory;
  PowerSources sources = opened({directory / "power", ""});
  const Descriptor into(::open((directory / "power").c_str(), O_WRONLY | O_CLOEXEC));
  for (const std::string_view piece : {"\n", "fai"}) {
    write_text(into.get(), piece);
    EXPECT_EQ(heard(sources), std::nullopt) << piece;
  }
  write_text(into.get(), "ling\nonline\n");
  EXPECT_EQ(heard(sources), PowerWord::Source::kPipe);
}

// As printf does it.
TEST(PowerSources, HearALineThatEndsWithItsHookAgainAndAgain) {
  const test::TemporaryDirectory directory;
  PowerSources sources = opened({directory / "power", ""});
  for (int i = 0; i < 3; ++i) {
    Descriptor into(::open((directory / "power").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(into.valid());
    write_text(into.get(), "failing");
    EXPECT_EQ(heard(sources), std::nullopt);  // it may go on
    into.reset(-1);
    EXPECT_EQ(heard(sources), PowerWord::Source::kPipe);
    EXPECT_TRUE(is_quiet(sources));
  }
}

TEST(PowerSources, SayWhatWasNotUnderstoodAFewTimes) {
  const test::TemporaryDirectory directory;
  PowerSources sources = opened({directory / "power", ""});
  const Descriptor into(::open((directory / "power").c_str(), O_WRONLY | O_CLOEXEC));
  int told = 0;
  for (int i = 0; i < 20; ++i) {
    write_text(into.get(), "on\tbattery\n");
    const auto word = sources.listen();
    if (word.ok()) continue;
    told += 1;
    EXPECT_EQ(word.status().error_number(), EPROTO);
    EXPECT_NE(word.status().text().find("\"on?battery\""), std::string::npos);
  }
  EXPECT_EQ(told, 8);
  write_text(into.get(), "odd\nfailing\n");
  EXPECT_EQ(heard(sources), PowerWord::Source::kPipe);
  EXPECT_TRUE(sources.listen().ok());
}

TEST(PowerSources, ForgetWhatIsTooLongForALine) {
  const test::TemporaryDirectory directory;
  PowerSources sources = opened({directory / "power", ""});
  const Descriptor into(::open((directory / "power").c_str(), O_WRONLY | O_CLOEXEC));
  write_text(into.get(), std::string(4000, 'x') + "failing\n");
  const auto odd = sources.listen();
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.status().error_number(), EPROTO);
  write_text(into.get(), "failing\n");
  EXPECT_EQ(heard(sources), PowerWord::Source::kPipe);
}

TEST(PowerSources, HearTheSerialLineBesideItsHeartbeats) {
  const Line line = make_line();
  PowerSources sources = opened({"", line.device});
  write_text(line.microcontroller.get(), "...\n\r");
  EXPECT_EQ(heard(sources), std::nullopt);
  EXPECT_TRUE(is_quiet(sources));
  write_text(line.microcontroller.get(), "..F");
  EXPECT_EQ(heard(sources), PowerWord::Source::kSerialLine);
}

TEST(PowerSources, SayOnceThatTheSerialLineHungUpAndHearTheOthersOn) {
  Line line = make_line();
  PowerSources sources = opened({"", line.device});
  line.microcontroller.reset(-1);
  pollfd wanted{sources.descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&wanted, 1, kWaitMsMax), 1);
  const auto lost = sources.listen();
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.status().error_number(), EIO);
  EXPECT_TRUE(is_quiet(sources));
  ASSERT_EQ(::kill(::getpid(), SIGPWR), 0);
  EXPECT_EQ(heard(sources), PowerWord::Source::kSignal);
}

TEST(PowerSources, RefuseWhatIsNoPipeAndNoLine) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "file", "a user's");
  const auto pipe = PowerSources::open({directory / "file", ""});
  ASSERT_FALSE(pipe.ok());
  EXPECT_EQ(pipe.status().error_number(), EEXIST);
  EXPECT_EQ(test::read_file(directory / "file"), "a user's");
  const auto line = PowerSources::open({"", directory / "file"});
  ASSERT_FALSE(line.ok());
  EXPECT_EQ(line.status().error_number(), ENOTTY);
}

TEST(PowerSources, TellAHookThatNobodyListens) {
  const test::TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "power").c_str(), 0600), 0);
  EXPECT_EQ(tell_power_failing(directory / "power").error_number(), ENXIO);
  EXPECT_EQ(tell_power_failing(directory / "none").error_number(), ENOENT);
}

}  // namespace
}  // namespace pawl::wsp
