#include "wsp/process/given_rights.h"

#include <fmt/core.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "wsp/process/bounded_child.h"
#include "wsp/process/proc.h"
#include "wsp/process/restore_rights.h"

namespace pawl::wsp {

namespace {

constexpr std::size_t kCredentialBytesMax = 256;  // of the list, besides the groups

std::string limit_text(std::uint64_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

}  // namespace

Status GivenRights::give_limits(pid_t process) {
  constexpr const char* kWhat = "cannot give the program its limits";
  list_.clear();
  for (std::uint64_t limit = 0; limit < kLimitsCount; ++limit) {
    const auto& its = saved_.process.limits[limit];
    list_.add(SYS_prlimit64, {0, limit, list_.place(its, sizeof(its)), 0});
  }
  Status given = make_calls_(process, kWhat);
  if (given.ok() || given.error_number() == ECANCELED) return given;
  for (std::size_t limit = 0; limit < kLimitsCount; ++limit) {
    if (list_.call(limit).failed() && limit != RLIMIT_CORE) return cannot_raise(process, limit);
  }
  return give_limit_of_cores(process);
}

// As far as it may be raised: sudo(8), say, takes it away, and nothing that the program does
// depends on it.
Status GivenRights::give_limit_of_cores(pid_t process) {
  rlimit ours{};
  if (::prlimit(process, RLIMIT_CORE, nullptr, &ours) != 0)
    return FailedCall{errno, "cannot read the limits of the new process"};
  const auto& its = saved_.process.limits[RLIMIT_CORE];
  const rlimit wanted{std::min<rlim_t>(its[0], ours.rlim_max), ours.rlim_max};
  list_.clear();
  list_.add(SYS_prlimit64, {0, RLIMIT_CORE, list_.place(&wanted, sizeof(wanted)), 0});
  return make_calls_(process, "cannot give the program its limit of core dumps");
}

Status GivenRights::cannot_raise(pid_t process, std::size_t limit) const {
  const int error_number = list_.call(limit).error_number();
  const LimitName name = name_of_limit(limit);
  const auto& its = saved_.process.limits[limit];
  rlimit ours{};
  ::prlimit(process, static_cast<__rlimit_resource>(limit), nullptr, &ours);
  return FailedCall{
      error_number,
      fmt::format("cannot give the program its limit {}: it had {}, and this command may have {} "
                  "at most; start it with as much: prlimit --{}={} pawl wsp restore ...",
                  name.name, limit_text(its[1]), limit_text(ours.rlim_max), name.option,
                  limit_text(its[1]))};
}

Status GivenRights::add_credentials() {
  const ProcessFacts& facts = saved_.process;
  // Those of whoever restores it are not the program's; and to ask for what it has takes a right.
  if (!has_our_groups()) {
    const std::size_t bytes = saved_.groups.size() * sizeof(saved_.groups[0]);
    if (!list_.has_room(bytes + kCredentialBytesMax))
      return Status::failure(ENOTSUP, "the program has too many groups");
    const std::uint64_t groups = list_.place(saved_.groups.data(), bytes);
    list_.add(SYS_setgroups, {saved_.groups.size(), groups});
  }
  // Else the capabilities that it kept would go with the user.
  list_.add(SYS_prctl, {PR_SET_KEEPCAPS, 1});
  list_.add(SYS_setresgid, {facts.group_ids[0], facts.group_ids[1], facts.group_ids[2]});
  list_.add(SYS_setresuid, {facts.user[0], facts.user[1], facts.user[2]});
  list_.add(SYS_setfsgid, {facts.group_ids[3]});
  list_.add(SYS_setfsuid, {facts.user[3]});
  list_.add(SYS_prctl, {PR_SET_KEEPCAPS, 0});
  PAWL_TRY(add_bounds());
  add_capabilities({facts.capabilities[0], facts.capabilities[1], facts.capabilities[2]});
  return {};
}

bool GivenRights::has_our_groups() const {
  const int count = ::getgroups(0, nullptr);
  if (count < 0 || static_cast<std::size_t>(count) != saved_.groups.size()) return false;
  std::vector<gid_t> ours(saved_.groups.size());
  return ::getgroups(count, ours.data()) == count &&
         std::equal(ours.begin(), ours.end(), saved_.groups.begin());
}

void GivenRights::add_capabilities(const Capabilities& wanted) {
  const __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const KernelCapabilities halves = in_halves(wanted);
  // One call's arguments are placed in the list before it is made.
  const std::uint64_t header_place = list_.place(&header, sizeof(header));
  list_.add(SYS_capset, {header_place, list_.place(halves.data(), sizeof(halves))});
}

// What bounds the capabilities, where it is not as the new process has it from us.
Status GivenRights::add_bounds() {
  const std::uint64_t bounding = saved_.process.capabilities[3];
  const std::uint64_t ambient = saved_.process.capabilities[4];
  const std::string status = read_proc(::getpid(), "status");
  const std::uint64_t own_bounding = number_of(field_of(status, "CapBnd"), 16);
  const std::uint64_t own_permitted = number_of(field_of(status, "CapPrm"), 16);
  const std::uint64_t own_ambient = number_of(field_of(status, "CapAmb"), 16);
  const auto own_bits = static_cast<std::uint32_t>(::prctl(PR_GET_SECUREBITS));
  const std::uint32_t bits = saved_.process.secure_bits;
  if ((bounding & ~own_bounding) != 0)
    return Status::failure(EPERM,
                           "the program may be given capabilities that are out of reach "
                           "here (its bounding set); restore it where it was started");
  if ((saved_.process.capabilities[1] & ~own_permitted) != 0)
    return Status::failure(EPERM,
                           "the program has capabilities that this command lacks; restore it as "
                           "it was started");
  if (bounding == own_bounding && (ambient | own_ambient) == 0 && bits == own_bits) return {};
  add_capabilities({saved_.process.capabilities[0] | ambient, own_permitted, own_permitted});
  list_.add(SYS_prctl, {PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL});
  for (std::uint64_t one = 0; one < 64; ++one) {
    const std::uint64_t bit = 1ULL << one;
    if ((ambient & bit) != 0) list_.add(SYS_prctl, {PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one});
    if ((own_bounding & ~bounding & bit) != 0) list_.add(SYS_prctl, {PR_CAPBSET_DROP, one});
  }
  if (bits != own_bits) list_.add(SYS_prctl, {PR_SET_SECUREBITS, bits});
  return {};
}

Status GivenRights::give_privileges(const ThreadFacts& facts) {
  list_.clear();
  PAWL_TRY(add_credentials());
  list_.add(SYS_personality, {facts.personality});
  if (facts.has_no_new_privileges != 0) list_.add(SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1});
  list_.add(SYS_prctl, {PR_SET_PDEATHSIG, static_cast<std::uint64_t>(facts.death_signal)});
  return make_calls_(facts.number, "cannot give a thread its privileges");
}

Status check_rights(const SavedProcess& saved) {
  CallList list;
  GivenRights rights(saved, list, [&list](pid_t, const char* what) {
    PAWL_TRY(list.make_here());
    return list.first_failure(what);
  });
  // Apart: with its limits a process may not open what it takes to read its privileges.
  PAWL_TRY(try_restoring([&rights] { return rights.give_limits(::getpid()); }));
  return try_restoring(
      [&rights, &saved] { return rights.give_privileges(saved.threads.at(0).facts); });
}

}  // namespace pawl::wsp
