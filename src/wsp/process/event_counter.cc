#include "wsp/process/event_counter.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kTellingCount = 2;  // the least at which the two kinds answer differently

// Never waits, whatever another process does meanwhile.
bool take(int counter, std::uint64_t& into) {
  const iovec place{&into, sizeof(into)};
  return ::preadv2(counter, &place, 1, -1, RWF_NOWAIT) == sizeof(into);
}

bool add(int counter, std::uint64_t count) {
  return count == 0 || ::write(counter, &count, sizeof(count)) == sizeof(count);
}

}  // namespace

Result<bool> is_semaphore(int counter, std::uint64_t count) {
  const std::uint64_t added = count < kTellingCount ? kTellingCount - count : 0;
  const std::uint64_t expected = count + added;
  std::uint64_t answer = 0;
  if (!add(counter, added) || !take(counter, answer))
    return FailedCall{errno, "cannot find out what an eventfd is"};
  // A semaphore gives one at a time, another counter all that it has.
  const bool is_one_by_one = answer == 1;
  const std::uint64_t left = is_one_by_one ? expected - 1 : 0;
  if (answer != 1 && answer != expected) {
    add(counter, answer);
    return Status::failure(EBUSY, "another process uses an eventfd of the program's; try again");
  }
  std::uint64_t more = 0;
  const bool is_as_it_was = left > count ? take(counter, more) : add(counter, count - left);
  if (!is_as_it_was) return FailedCall{errno, "cannot give an eventfd its count again"};
  return is_one_by_one;
}

}  // namespace pawl::wsp
