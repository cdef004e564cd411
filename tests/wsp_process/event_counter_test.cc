// What an eventfd is is found out by use, and nothing of it is changed.
#include "wsp/process/event_counter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "medium/descriptor.h"

namespace pawl::wsp {
namespace {

constexpr std::uint64_t kCountMax = 0xfffffffffffffffe;

std::uint64_t count_of(int counter, bool is_semaphore) {
  std::uint64_t count = 0;
  pollfd asked{counter, POLLIN, 0};
  while (::poll(&asked, 1, 0) == 1) {
    std::uint64_t got = 0;
    if (::read(counter, &got, sizeof(got)) != sizeof(got)) return ~0ULL;
    count += got;
    if (!is_semaphore) break;
  }
  return count;
}

TEST(EventCounter, ASemaphoreCameBackAsAnOrdinaryCounter) {
  for (const std::uint64_t count : {0, 1, 2, 3, 100}) {
    for (const int flags : {0, static_cast<int>(EFD_NONBLOCK)}) {
      for (const bool is_one : {false, true}) {
        const Descriptor counter(
            ::eventfd(static_cast<unsigned>(count), flags | (is_one ? int{EFD_SEMAPHORE} : 0)));
        const Result<bool> found = is_semaphore(counter.get(), count);
        ASSERT_TRUE(found.ok()) << found.status().text();
        EXPECT_EQ(found.value(), is_one) << count;
        EXPECT_EQ(count_of(counter.get(), is_one), count);
      }
    }
  }
}

TEST(EventCounter, OneThatIsFullIsFullAgain) {
  for (const bool is_one : {false, true}) {
    const Descriptor counter(::eventfd(0, is_one ? int{EFD_SEMAPHORE} : 0));
    ASSERT_EQ(::write(counter.get(), &kCountMax, sizeof(kCountMax)), 8);
    const Result<bool> found = is_semaphore(counter.get(), kCountMax);
    ASSERT_TRUE(found.ok()) << found.status().text();
    EXPECT_EQ(found.value(), is_one);
    pollfd asked{counter.get(), POLLIN | POLLOUT, 0};
    EXPECT_EQ(::poll(&asked, 1, 0), 1);
    EXPECT_EQ(asked.revents, POLLIN);
  }
}

TEST(EventCounter, OneThatAnotherProcessHasTakenFromIsNotGuessedAt) {
  const Descriptor counter(::eventfd(7, 0));
  EXPECT_EQ(is_semaphore(counter.get(), 9).status().error_number(), EBUSY);
  EXPECT_EQ(count_of(counter.get(), false), 7u);  // it adds before it takes
}

TEST(EventCounter, OneThatAnotherProcessKeepsFullHeldTheSaveUp) {
  const Descriptor counter(::eventfd(0, 0));
  ASSERT_EQ(::write(counter.get(), &kCountMax, sizeof(kCountMax)), 8);
  const pid_t fills = ::fork();
  while (fills == 0) (void)!::write(counter.get(), &kCountMax, sizeof(kCountMax));
  // Until it has come in between.
  while (is_semaphore(counter.get(), kCountMax).ok()) {
  }
  ::kill(fills, SIGKILL);
  ::waitpid(fills, nullptr, 0);
  EXPECT_EQ(::fcntl(counter.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace pawl::wsp
