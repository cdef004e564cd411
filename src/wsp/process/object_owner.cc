#include "wsp/process/object_owner.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "medium/descriptor.h"

namespace pawl::wsp {

namespace {

constexpr mode_t kModeBits = 07777;

}  // namespace

Status read_owner(int object, DescriptorFacts& into) {
  struct stat present{};
  if (::fstat(object, &present) != 0) return FailedCall{errno, "cannot look at a descriptor"};
  into.user = present.st_uid;
  into.group = present.st_gid;
  into.mode = present.st_mode & kModeBits;
  return {};
}

Status give_owner(const DescriptorFacts& facts, int object) {
  DescriptorFacts present{};
  PAWL_TRY(read_owner(object, present));
  // The mode first: it takes a privilege when it is another's.
  if (present.mode != facts.mode && ::fchmod(object, facts.mode) != 0)
    return FailedCall{errno, fmt::format("its mode {:o} cannot be given to it", facts.mode)};
  if ((present.user != facts.user || present.group != facts.group) &&
      ::fchown(object, facts.user, facts.group) != 0) {
    return FailedCall{errno, fmt::format("it cannot be given to user {} and group {} again, whose "
                                         "it was; restore with CAP_CHOWN",
                                         facts.user, facts.group)};
  }
  return {};
}

Status check_owner(const DescriptorFacts& facts) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return FailedCall{errno, "cannot make a socket"};
  return give_owner(facts, probe.get());
}

}  // namespace pawl::wsp
