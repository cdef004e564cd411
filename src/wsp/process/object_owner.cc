#include "wsp/process/object_owner.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "medium/descriptor.h"
#include "wsp/process/program_rights.h"

namespace pawl::wsp {

namespace {

constexpr mode_t kModeBits = 07777;

Status give_mode(const DescriptorFacts& facts, int object) {
  if (::fchmod(object, facts.mode) == 0) return {};
  return FailedCall{errno, fmt::format("its mode {:o} cannot be given to it", facts.mode)};
}

Status give_user(const DescriptorFacts& facts, int object) {
  if (::fchown(object, facts.user, facts.group) == 0) return {};
  return FailedCall{errno, fmt::format("it cannot be given to user {} and group {} again, whose "
                                       "it was; restore with CAP_CHOWN",
                                       facts.user, facts.group)};
}

bool is_of_ping(int protocol) { return protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6; }

bool is_owner(const DescriptorFacts& facts, const DescriptorFacts& present) {
  return facts.user == present.user && facts.group == present.group;
}

}  // namespace

Status read_owner(int object, DescriptorFacts& into) {
  struct stat present{};
  if (::fstat(object, &present) != 0) return FailedCall{errno, "cannot look at a descriptor"};
  into.user = present.st_uid;
  into.group = present.st_gid;
  into.mode = present.st_mode & kModeBits;
  return {};
}

Result<Descriptor> make_owned_socket(const SavedProcess& program, const DescriptorFacts& facts,
                                     int domain, int type, int protocol) {
  const auto make = [&] { return ::socket(domain, type | SOCK_CLOEXEC, protocol); };
  Descriptor made;
  {
    const Result<ProgramRights> rights = ProgramRights::take(program, facts);
    if (!rights.ok()) return rights.status();
    made.reset(make());
  }
  // The kernel asks for the group (ping_group_range), which the program may have left since.
  if (!made.valid() && errno == EACCES && is_of_ping(protocol)) made.reset(make());
  if (!made.valid()) return FailedCall{errno, "a socket"};
  return made;
}

Status give_owner(const SavedProcess& program, const DescriptorFacts& facts, int object) {
  DescriptorFacts present{};
  PAWL_TRY(read_owner(object, present));
  if (present.mode != facts.mode) {
    // Before it is given away, and by its owner: it takes a privilege when it is another's.
    const Result<ProgramRights> rights = ProgramRights::take(program, facts);
    if (!rights.ok()) return rights.status();
    PAWL_TRY(give_mode(facts, object));
  }
  return is_owner(facts, present) ? Status{} : give_user(facts, object);
}

Status check_owner(const SavedProcess& program, const DescriptorFacts& facts) {
  const Result<Descriptor> probe = make_owned_socket(program, facts, AF_UNIX, SOCK_DGRAM, 0);
  return probe.ok() ? give_owner(program, facts, probe.value().get()) : probe.status();
}

Status check_gift(const DescriptorFacts& facts) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return FailedCall{errno, "cannot make a socket"};
  DescriptorFacts present{};
  PAWL_TRY(read_owner(probe.get(), present));
  PAWL_TRY(give_mode(facts, probe.get()));
  return is_owner(facts, present) ? Status{} : give_user(facts, probe.get());
}

}  // namespace pawl::wsp
