#include "wsp/process/program_rights.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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

bool ProgramRights::are_whole_ = false;

Result<ProgramRights> ProgramRights::take(const SavedProcess& program) {
  ProgramRights taken;
  if (Status done = taken.become(program); !done.ok()) return done;
  return taken;
}

Result<ProgramRights> ProgramRights::take(const SavedProcess& program,
                                          const DescriptorFacts& object) {
  Result<ProgramRights> taken = take(program);
  if (!taken.ok()) return taken;
  if (set_user(kNoChange) == object.user && set_group(kNoChange) == object.group) return taken;
  ProgramRights& rights = taken.value();
  Credentials its;
  rights.is_changed_ = true;
  if (!read(its) || !write_capabilities(rights.own_.capabilities))
    return FailedCall{errno, "cannot make what is another user's"};
  set_group(object.group);
  set_user(object.user);
  // A change of user gives some.
  if (!write_capabilities(its.capabilities))
    return FailedCall{errno, "cannot take the program's capabilities"};
  return taken;
}

Result<ProgramRights> ProgramRights::take(pid_t thread) {
  const std::string status = read_proc(thread, "status");
  const std::vector<std::uint64_t> users = numbers_of(field_of(status, "Uid"));
  const std::vector<std::uint64_t> groups = numbers_of(field_of(status, "Gid"));
  SavedProcess program;
  if (users.size() != std::size(program.process.user) || groups.size() != users.size())
    return Status::failure(ESRCH, "the program ended meanwhile");
  std::copy(users.begin(), users.end(), program.process.user);
  std::copy(groups.begin(), groups.end(), program.process.group_ids);
  for (const std::uint64_t group : numbers_of(field_of(status, "Groups")))
    program.groups.push_back(static_cast<std::uint32_t>(group));
  program.process.capabilities[2] = number_of(field_of(status, "CapEff"), 16);
  return take(program);
}

bool ProgramRights::read(Credentials& into) {
  uid_t saved = 0;
  if (::getresuid(&into.users.real, &into.users.effective, &saved) != 0 ||
      ::getresgid(&into.groups.real, &into.groups.effective, &saved) != 0 ||
      !read_capabilities(into.capabilities))
    return false;
  into.users.of_files = set_user(kNoChange);
  into.groups.of_files = set_group(kNoChange);
  into.others = read_groups();
  return true;
}

// The saved ones stay, by which we come back.
bool ProgramRights::change(const Credentials& from, const Credentials& to) const {
  const auto is_other = [](const Users& one, const Users& other) {
    return one.real != other.real || one.effective != other.effective;
  };
  if (is_other(from.users, to.users) &&
      ::syscall(SYS_setresuid, to.users.real, to.users.effective, kNoChange) != 0)
    return false;
  // What comes next takes capabilities, and a change of user takes them away.
  if (!write_capabilities(own_.capabilities)) return false;
  if (is_other(from.groups, to.groups) &&
      ::syscall(SYS_setresgid, to.groups.real, to.groups.effective, kNoChange) != 0)
    return false;
  if (from.others != to.others && !set_groups(to.others)) return false;
  set_group(to.groups.of_files);
  set_user(to.users.of_files);
  errno = EPERM;
  return set_group(kNoChange) == to.groups.of_files && set_user(kNoChange) == to.users.of_files &&
         write_capabilities(to.capabilities);
}

Status ProgramRights::become(const SavedProcess& program) {
  const ProcessFacts& its = program.process;
  if (!read(own_)) return FailedCall{errno, "cannot read our capabilities"};
  Credentials wanted = own_;
  if (are_whole_) {
    wanted.users = {its.user[0], its.user[1], 0};
    wanted.groups = {its.group_ids[0], its.group_ids[1], 0};
  }
  wanted.users.of_files = its.user[3];
  wanted.groups.of_files = its.group_ids[3];
  wanted.others.assign(program.groups.begin(), program.groups.end());
  wanted.capabilities.effective = own_.capabilities.permitted & its.capabilities[2];
  if (wanted == own_) return {};
  is_changed_ = true;
  // Else those that are permitted go with root's user, on the way to the program or back.
  if (are_whole_ && ::prctl(PR_GET_KEEPCAPS) == 0) {
    if (::prctl(PR_SET_KEEPCAPS, 1) != 0)
      return FailedCall{errno, "cannot keep our capabilities while we do what the program may"};
    has_kept_capabilities_ = true;
  }
  if (!change(own_, wanted))
    return FailedCall{errno, "we may not do what the program may: it has another user"};
  return {};
}

ProgramRights::ProgramRights(ProgramRights&& other) noexcept
    : is_changed_(std::exchange(other.is_changed_, false)),
      has_kept_capabilities_(other.has_kept_capabilities_),
      own_(std::move(other.own_)) {}

ProgramRights::~ProgramRights() {
  if (!is_changed_) return;
  const int error_number = errno;
  Credentials its;
  PAWL_ASSERT(read(its) && write_capabilities(own_.capabilities) && change(its, own_));
  if (has_kept_capabilities_) PAWL_ASSERT(::prctl(PR_SET_KEEPCAPS, 0) == 0);
  errno = error_number;
}

}  // namespace pawl::wsp
