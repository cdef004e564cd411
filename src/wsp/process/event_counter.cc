#include "wsp/process/event_counter.h"

#include <fcntl.h>
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

// Nor does this, for which there is no flag of one call: the counter itself does not wait
// meanwhile.
bool add(int counter, std::uint64_t count) {
  if (count == 0) return true;
  const int flags = ::fcntl(counter, F_GETFL);
  if (flags < 0 || ::fcntl(counter, F_SETFL, flags | O_NONBLOCK) != 0) return false;
  const bool is_added = ::write(counter, &count, sizeof(count)) == sizeof(count);
  const int error_number = errno;
  ::fcntl(counter, F_SETFL, flags);
  errno = error_number;
  return is_added;
}

Status used_by_another() {
  return Status::failure(EBUSY, "another process uses an eventfd of the program's; try again");
}

// Where a call would have had to wait, another process has done something meanwhile.
Status cannot_ask(const char* what) {
  return errno == EAGAIN ? used_by_another() : Status(FailedCall{errno, what});
}

}  // namespace

Result<bool> is_semaphore(int counter, std::uint64_t count) {
  const std::uint64_t added = count < kTellingCount ? kTellingCount - count : 0;
  const std::uint64_t expected = count + added;
  std::uint64_t answer = 0;
  if (!add(counter, added) || !take(counter, answer))
    return cannot_ask("cannot find out what an eventfd is");
  // A semaphore gives one at a time, another counter all that it has.
  const bool is_one_by_one = answer == 1;
  const std::uint64_t left = is_one_by_one ? expected - 1 : 0;
  if (answer != 1 && answer != expected) {
    add(counter, answer);
    return used_by_another();
  }
  std::uint64_t more = 0;
  const bool is_as_it_was = left > count ? take(counter, more) : add(counter, count - left);
  if (!is_as_it_was) return cannot_ask("cannot give an eventfd its count again");
  return is_one_by_one;
}

}  // namespace pawl::wsp
