#include "wsp/process/program_rights.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "wsp/process/capabilities.h"
#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

constexpr auto kNoChange = static_cast<std::uint32_t>(-1);  // setfsuid(2) then only answers

// The system calls: libc's functions change all threads of the process.
uid_t set_user(uid_t user) { return static_cast<uid_t>(::syscall(SYS_setfsuid, user)); }
gid_t set_group(gid_t group) { return static_cast<gid_t>(::syscall(SYS_setfsgid, group)); }
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

bool read_capabilities(Capabilities& into) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  KernelCapabilities halves{};
  if (::syscall(SYS_capget, &header, halves.data()) != 0) return false;
  into = of_halves(halves);
  return true;
}

bool write_capabilities(const Capabilities& from) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capset, &header, in_halves(from).data()) == 0;
}

std::vector<gid_t> read_groups() {
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> groups(count < 0 ? 0 : static_cast<std::size_t>(count));
  if (count > 0 && ::getgroups(count, groups.data()) != count) groups.clear();
  return groups;
}

}  // namespace

Result<ProgramRights> ProgramRights::take(const SavedProcess& program) {
  ProgramRights taken;
  if (Status done = taken.become(program); !done.ok()) return done;
  return taken;
}

Result<ProgramRights> ProgramRights::take(pid_t thread) {
  const std::string status = read_proc(thread, "status");
  const std::vector<std::uint64_t> users = numbers_of(field_of(status, "Uid"));
  const std::vector<std::uint64_t> groups = numbers_of(field_of(status, "Gid"));
  SavedProcess program;
  if (users.size() != std::size(program.process.user) || groups.size() != users.size())
    return Status::failure(ESRCH, "the program ended meanwhile");
  program.process.user[3] = static_cast<std::uint32_t>(users[3]);
  program.process.group_ids[3] = static_cast<std::uint32_t>(groups[3]);
  for (const std::uint64_t group : numbers_of(field_of(status, "Groups")))
    program.groups.push_back(static_cast<std::uint32_t>(group));
  program.process.capabilities[2] = number_of(field_of(status, "CapEff"), 16);
  return take(program);
}

Status ProgramRights::become(const SavedProcess& program) {
  const uid_t user = program.process.user[3];
  const gid_t group = program.process.group_ids[3];
  const std::vector<gid_t> groups(program.groups.begin(), program.groups.end());
  Capabilities ours;
  if (!read_capabilities(ours)) return FailedCall{errno, "cannot read our capabilities"};
  const std::uint64_t effective = ours.permitted & program.process.capabilities[2];
  user_ = set_user(kNoChange);
  group_ = set_group(kNoChange);
  groups_ = read_groups();
  effective_ = ours.effective;
  if (user == user_ && group == group_ && groups == groups_ && effective == effective_) return {};
  is_changed_ = true;
  const bool has_groups = groups == groups_ || set_groups(groups);
  const int error_number = has_groups ? EPERM : errno;
  set_group(group);
  set_user(user);
  if (!has_groups || set_group(kNoChange) != group || set_user(kNoChange) != user)
    return FailedCall{error_number, "we may not do what the program may: it has another user"};
  // Last, for the others take capabilities.
  ours.effective = effective;
  if (!write_capabilities(ours)) return FailedCall{errno, "cannot take the program's capabilities"};
  return {};
}

ProgramRights::ProgramRights(ProgramRights&& other) noexcept
    : is_changed_(std::exchange(other.is_changed_, false)),
      user_(other.user_),
      group_(other.group_),
      groups_(std::move(other.groups_)),
      effective_(other.effective_) {}

ProgramRights::~ProgramRights() {
  if (!is_changed_) return;
  const int error_number = errno;
  Capabilities ours;
  PAWL_ASSERT(read_capabilities(ours));
  // First, for the others take capabilities; and again, for a change of user takes some away.
  ours.effective = effective_;
  PAWL_ASSERT(write_capabilities(ours));
  set_user(user_);
  set_group(group_);
  PAWL_ASSERT(groups_ == read_groups() || set_groups(groups_));
  PAWL_ASSERT(write_capabilities(ours));
  PAWL_ASSERT(set_user(kNoChange) == user_ && set_group(kNoChange) == group_);
  errno = error_number;
}

}  // namespace pawl::wsp
