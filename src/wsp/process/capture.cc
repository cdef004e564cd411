#include "wsp/process/capture.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/membarrier.h>
#include <linux/rseq.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <optional>
#include <span>

#include "medium/checksum.h"
#include "medium/descriptor.h"
#include "tracing/thread.h"
#include "wsp/process/capabilities.h"
#include "wsp/process/changed_pages.h"
#include "wsp/process/cut_call.h"
#include "wsp/process/file_proof.h"
#include "wsp/process/mapped_file.h"
#include "wsp/process/maps.h"
#include "wsp/process/proc.h"
#include "wsp/process/program_memory.h"

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kSignalSetBytes = 8;
constexpr int kGetClearAddress = 40;  // PR_GET_TID_ADDRESS
// Which Debian 12 does not name: MEMBARRIER_CMD_GET_REGISTRATIONS, PR_GET_MDWE.
constexpr std::uint64_t kGetBarrierRegistrations = 1U << 9;
constexpr std::uint64_t kGetWriteExecute = 66;
constexpr std::uint32_t kBarrierRegistrations =
    MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED |
    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE |
    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ;

// What a thread did within a restartable sequence holds for the processor that it ran on only: it
// begins again, as when the kernel takes the processor from it.  The kernel forgets that it was in
// one as soon as the thread makes our calls.
Status leave_sequence(pid_t thread, ProgramMemory& memory,
                      const tracing::RestartableSequence& sequence, user_regs_struct& registers) {
  if (sequence.address == 0) return {};
  const std::optional<std::uint64_t> place =
      memory.read_stored<std::uint64_t>(sequence.address + offsetof(rseq, rseq_cs));
  if (!place || *place == 0) return {};
  const std::optional<rseq_cs> critical = memory.read_object<rseq_cs>(*place);
  if (!critical) {
    return Status::failure(
        ENOTSUP, fmt::format("thread {} may be in a restartable sequence (rseq(2)) that cannot be "
                             "read: it is described in a file whose server does not answer",
                             thread));
  }
  if (registers.rip - critical->start_ip < critical->post_commit_offset)
    registers.rip = critical->abort_ip;
  return {};
}

std::uint64_t nanoseconds_of(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

Status too_many_signals() {
  return Status::failure(ENOTSUP,
                         fmt::format("{} signals wait, or more, for one thread or for the process",
                                     kPendingSignalsMax));
}

Status hidden() {
  return Status::failure(EPERM,
                         "the program does not let itself be looked at (PR_SET_DUMPABLE, or it may "
                         "do more than Pawl); run it with CAP_SYS_PTRACE");
}

Status gone() { return Status::failure(ESRCH, "the program ended meanwhile"); }

void add_thread_calls(CallList& list, std::uint64_t& stack, std::uint64_t& clear,
                      std::uint64_t& name) {
  const stack_t no_stack{};
  const std::uint64_t zeros[2] = {};
  stack = list.place(&no_stack, sizeof(no_stack));
  clear = list.place(zeros, sizeof(zeros[0]));
  name = list.place(zeros, sizeof(zeros));
  list.add(SYS_sigaltstack, {0, stack});
  list.add(SYS_prctl, {kGetClearAddress, clear});
  list.add(SYS_prctl, {PR_GET_NAME, name});
}

// Whom a thread acts for.
struct Privileges {
  std::uint32_t users[3];
  std::uint32_t groups[3];
  __user_cap_header_struct header;
  KernelCapabilities capabilities;
};

struct PrivilegeCalls {
  std::uint64_t place = 0;
  std::uint64_t other_groups_place = 0;
  std::size_t other_groups = 0;
  std::size_t user = 0;  // which call tells that of the file system
  std::size_t group = 0;
  std::size_t secure_bits = 0;
};

// What the kernel puts its answer over.
constexpr std::uint32_t kNoGroups[kGroupsMax]{};

PrivilegeCalls add_privilege_calls(CallList& list, const std::vector<std::uint32_t>& groups) {
  Privileges none{};
  none.header.version = _LINUX_CAPABILITY_VERSION_3;
  PrivilegeCalls calls;
  const std::uint64_t place = calls.place = list.place(&none, sizeof(none));
  constexpr std::uint64_t kNoChange = 0xffffffff;
  const auto three = [&](long call, std::uint64_t at) {
    list.add(call, {at, at + sizeof(std::uint32_t), at + 2 * sizeof(std::uint32_t)});
  };
  three(SYS_getresuid, place + offsetof(Privileges, users));
  three(SYS_getresgid, place + offsetof(Privileges, groups));
  list.add(SYS_capget,
           {place + offsetof(Privileges, header), place + offsetof(Privileges, capabilities)});
  calls.secure_bits = list.add(SYS_prctl, {PR_GET_SECUREBITS});
  calls.user = list.add(SYS_setfsuid, {kNoChange});
  calls.group = list.add(SYS_setfsgid, {kNoChange});
  // Whoever has more than there is room for is told EINVAL; no room asks only for their number.
  calls.other_groups_place = list.place(kNoGroups, groups.size() * sizeof(groups[0]));
  calls.other_groups = list.add(SYS_getgroups, {groups.size(), calls.other_groups_place});
  return calls;
}

// Each thread is given those of the first one.
bool are_of_process(const CallList& list, const PrivilegeCalls& calls, const SavedProcess& saved) {
  const ProcessFacts& facts = saved.process;
  const std::vector<std::uint32_t>& groups = saved.groups;
  Privileges found{};
  std::memcpy(&found, list.data(calls.place), sizeof(found));
  const Capabilities capabilities = of_halves(found.capabilities);
  return std::equal(found.users, found.users + 3, facts.user) &&
         std::equal(found.groups, found.groups + 3, facts.group_ids) &&
         list.call(calls.user).result == facts.user[3] &&
         list.call(calls.group).result == facts.group_ids[3] &&
         list.call(calls.other_groups).result == groups.size() &&
         std::equal(groups.begin(), groups.end(),
                    reinterpret_cast<const std::uint32_t*>(list.data(calls.other_groups_place))) &&
         list.call(calls.secure_bits).result == facts.secure_bits &&
         capabilities.inheritable == facts.capabilities[0] &&
         capabilities.permitted == facts.capabilities[1] &&
         capabilities.effective == facts.capabilities[2];
}

// What else prctl(2) and its kin set.
struct AttributeCalls {
  std::uint64_t place = 0;  // a thread's signal, and a process's being a reaper
  std::size_t personality = 0;
  std::size_t privileges = 0;
  std::size_t dumpable = 0;
  std::size_t speculation = 0;  // the first of them
  std::size_t machine_check = 0;
  std::size_t time_stamps = 0;
};

AttributeCalls add_attribute_calls(CallList& list) {
  const std::int32_t none[3]{};
  AttributeCalls calls;
  const std::uint64_t place = calls.place = list.place(none, sizeof(none));
  list.add(SYS_prctl, {PR_GET_PDEATHSIG, place});
  list.add(SYS_prctl, {PR_GET_CHILD_SUBREAPER, place + sizeof(none[0])});
  calls.personality = list.add(SYS_personality, {0xffffffff});
  calls.privileges = list.add(SYS_prctl, {PR_GET_NO_NEW_PRIVS});
  calls.dumpable = list.add(SYS_prctl, {PR_GET_DUMPABLE});
  for (std::uint64_t which = 0; which < kSpeculationsCount; ++which) {
    const std::size_t call = list.add(SYS_prctl, {PR_GET_SPECULATION_CTRL, which});
    if (which == 0) calls.speculation = call;
  }
  calls.machine_check = list.add(SYS_prctl, {PR_MCE_KILL_GET});
  calls.time_stamps = list.add(SYS_prctl, {PR_GET_TSC, place + 2 * sizeof(none[0])});
  return calls;
}

// Negative where the kernel does not know the call.
std::int32_t answer_of(const CallList& list, std::size_t call) {
  return static_cast<std::int32_t>(list.call(call).result);
}

void read_attributes(const CallList& list, const AttributeCalls& calls, ThreadFacts& thread,
                     ProcessFacts& process) {
  std::int32_t found[3];
  std::memcpy(found, list.data(calls.place), sizeof(found));
  thread.death_signal = found[0];
  thread.personality = static_cast<std::uint32_t>(list.call(calls.personality).result);
  thread.has_no_new_privileges = static_cast<std::int32_t>(list.call(calls.privileges).result);
  process.is_reaper = found[1];
  for (std::size_t which = 0; which < kSpeculationsCount; ++which)
    thread.speculation[which] = answer_of(list, calls.speculation + which);
  thread.machine_check = answer_of(list, calls.machine_check);
  thread.time_stamps = list.call(calls.time_stamps).failed() ? PR_TSC_ENABLE : found[2];
  process.is_dumpable = static_cast<std::int32_t>(list.call(calls.dumpable).result);
}

struct ProcessCalls {
  std::uint64_t actions = 0;
  std::uint64_t timers = 0;
  std::uint64_t clocks = 0;
  std::size_t barriers = 0;
  std::size_t barriers_known = 0;
  std::size_t write_execute = 0;
  std::size_t huge_pages = 0;
};

// A kernel that does not tell which are registered (before Linux 6.3) has all registered that it
// knows: that costs a little, and changes nothing else.
std::uint32_t barriers_of(const CallList& list, const ProcessCalls& calls) {
  const AnnexCall& registered = list.call(calls.barriers);
  const AnnexCall& known = list.call(calls.barriers_known);
  if (!registered.failed()) return static_cast<std::uint32_t>(registered.result);
  return known.failed() ? 0 : static_cast<std::uint32_t>(known.result) & kBarrierRegistrations;
}

// What a security module confines the program to, no restore could give it.
Status check_label(pid_t leader) {
  const char* const label = "attr/current";
  if (read_proc(leader, label) == read_proc(::getpid(), label)) return {};
  return Status::failure(ENOTSUP,
                         "the program has another security label than its supervisor (AppArmor, "
                         "SELinux), which a restore could not give it: start pawl with that label");
}

// What a restore gives with privileges is not asked by a list, in memory that whoever may trace the
// program can write: it comes from the kernel itself.
Status capture_what_takes_privileges(Process& process, const std::string& status,
                                     SavedProcess& saved) {
  const pid_t leader = process.leader();
  PAWL_TRY(check_label(leader));
  ProcessFacts& facts = saved.process;
  if (!read_limits(leader, facts.limits)) return gone();
  saved.has_no_new_privileges = number_of(field_of(status, "NoNewPrivs")) != 0;
  AnnexCall bits{SYS_prctl, {PR_GET_SECUREBITS}};
  PAWL_TRY(process.run_call(leader, bits));
  facts.secure_bits = static_cast<std::uint32_t>(bits.result);
  return {};
}

// What the kernel's answers are put over.
constexpr KernelAction kNoActions[kSignalsMax]{};
constexpr itimerval kNoTimers[kTimersCount]{};
constexpr timespec kNoTimes[std::size(kKeptClocks)]{};

void add_timer_calls(CallList& list, std::uint64_t place) {
  for (std::uint64_t timer = 0; timer < kTimersCount; ++timer)
    list.add(SYS_getitimer, {timer, place + timer * sizeof(itimerval)});
}

ProcessCalls add_process_calls(CallList& list) {
  ProcessCalls calls;
  calls.actions = list.place(kNoActions, sizeof(kNoActions));
  calls.timers = list.place(kNoTimers, sizeof(kNoTimers));
  calls.clocks = list.place(kNoTimes, sizeof(kNoTimes));
  calls.barriers = list.add(SYS_membarrier, {kGetBarrierRegistrations});
  calls.barriers_known = list.add(SYS_membarrier, {MEMBARRIER_CMD_QUERY});
  calls.write_execute = list.add(SYS_prctl, {kGetWriteExecute});
  calls.huge_pages = list.add(SYS_prctl, {PR_GET_THP_DISABLE});
  std::uint64_t clock_place = calls.clocks;
  for (const int clock : kKeptClocks) {
    list.add(SYS_clock_gettime, {static_cast<std::uint64_t>(clock), clock_place});
    clock_place += sizeof(timespec);
  }
  for (std::uint64_t signal = 1; signal <= kSignalsMax; ++signal)
    list.add(SYS_rt_sigaction,
             {signal, 0, calls.actions + (signal - 1) * sizeof(KernelAction), kSignalSetBytes});
  add_timer_calls(list, calls.timers);
  return calls;
}

Status capture_thread(Process& process, pid_t number, bool is_first, ProgramMemory& memory,
                      SavedProcess& saved) {
  SavedThread& thread = saved.threads.emplace_back();
  ThreadFacts& facts = thread.facts;
  facts.number = number;
  thread.vectors.resize(kVectorBytesMax);
  thread.vectors.resize(tracing::read_vector_state(number, thread.vectors));
  if (!tracing::read_registers(number, facts.registers) || thread.vectors.empty() ||
      !tracing::read_signal_mask(number, facts.signal_mask))
    return gone();
  const tracing::RestartableSequence sequence = tracing::restartable_sequence(number);
  process.complete_cut_call(number, memory, facts.registers);
  const user_regs_struct found = facts.registers;
  PAWL_TRY(leave_sequence(number, memory, sequence, facts.registers));
  user_regs_struct restartable = facts.registers;
  make_restartable(restartable);
  if (restartable.rax != found.rax || restartable.rip != found.rip)
    tracing::write_registers(number, restartable);
  make_restartable(facts.registers);
  process.begin_wait_anew(number, facts.registers);
  facts.vector_bytes = static_cast<std::uint32_t>(thread.vectors.size());
  thread.pending = tracing::pending_signals(number, false, kPendingSignalsMax);
  if (thread.pending.size() >= kPendingSignalsMax) return too_many_signals();
  facts.pending_count = static_cast<std::uint32_t>(thread.pending.size());
  facts.sequence_address = sequence.address;
  facts.sequence_bytes = sequence.bytes;
  facts.sequence_signature = sequence.signature;
  if (::syscall(SYS_get_robust_list, number, &facts.robust_list, &facts.robust_bytes) != 0)
    return errno == EPERM ? hidden() : gone();

  CallList& list = process.list();
  list.clear();
  std::uint64_t stack = 0;
  std::uint64_t clear = 0;
  std::uint64_t name = 0;
  add_thread_calls(list, stack, clear, name);
  const PrivilegeCalls privileges = add_privilege_calls(list, saved.groups);
  const AttributeCalls attributes = add_attribute_calls(list);
  ProcessCalls once;
  if (is_first) once = add_process_calls(list);
  list.add(SYS_set_tid_address, {0});
  list.add(SYS_set_robust_list, {0, facts.robust_bytes});
  PAWL_TRY(process.run_list(number));
  std::memcpy(&facts.alternate_stack, list.data(stack), sizeof(facts.alternate_stack));
  std::memcpy(&facts.clear_address, list.data(clear), sizeof(facts.clear_address));
  std::memcpy(facts.name, list.data(name), sizeof(facts.name));
  read_attributes(list, attributes, facts, saved.process);
  if (saved.has_no_new_privileges) facts.has_no_new_privileges = 1;
  if (!are_of_process(list, privileges, saved))
    return Status::failure(ENOTSUP,
                           fmt::format("thread {} has users, groups or capabilities of its "
                                       "own; only those of the whole process are kept",
                                       number));
  if (is_first) {
    std::memcpy(saved.process.actions, list.data(once.actions), sizeof(saved.process.actions));
    std::memcpy(saved.process.timers, list.data(once.timers), sizeof(saved.process.timers));
    saved.process.barriers = barriers_of(list, once);
    saved.process.write_execute = std::max(answer_of(list, once.write_execute), 0);
    saved.process.huge_pages = std::max(answer_of(list, once.huge_pages), 0);
    timespec clocks[std::size(kKeptClocks)];
    std::memcpy(clocks, list.data(once.clocks), sizeof(clocks));
    for (std::size_t i = 0; i < std::size(clocks); ++i)
      saved.system.clocks_ns[i] = nanoseconds_of(clocks[i]);
  }
  return {};
}

void copy_numbers(std::string_view text, std::uint32_t (&into)[4]) {
  const std::vector<std::uint64_t> numbers = numbers_of(text);
  for (std::size_t i = 0; i < 4 && i < numbers.size(); ++i)
    into[i] = static_cast<std::uint32_t>(numbers[i]);
}

// Under its name, by which a restore goes there, and judges one that was removed.
Status capture_directory(pid_t leader, SavedProcess& saved) {
  saved.directory = read_proc_link(leader, "cwd");
  FileProof proof;
  // A file system may answer its user alone (FUSE): then there is no proof.
  if (!prove_known_directory(leader, proof)) return {};
  saved.process.directory = {proof.device, proof.inode, proof.birth_time_ns};
  const Result<Descriptor> named = find_known_file(saved.directory, proof);
  if (named.ok()) return {};
  // Never gone to with more rights than the program's.
  saved.process.directory.birth_time_ns = 0;
  if (!is_elsewhere(saved.directory, named.status().error_number()) ||
      saved.directory.ends_with(" (deleted)"))
    return {};
  return Status::failure(ENOTSUP, "the program's current directory is not there under its name, " +
                                      saved.directory +
                                      " (another file system lies there, or it was handed on)");
}

Status capture_process(Process& process, SavedProcess& saved) {
  const pid_t leader = process.leader();
  ProcessFacts& facts = saved.process;
  facts.process = leader;
  facts.memory_descriptor = process.calls().descriptor();
  facts.break_end = process.calls().break_end();
  const std::string status = read_proc(leader, "status");
  const std::vector<std::uint64_t> stat = stat_fields(leader);
  constexpr std::size_t kStatFieldsMin = 52 - 3;
  if (status.empty() || stat.size() < kStatFieldsMin) return gone();
  const auto field = [&](std::size_t number) { return stat[number - 3]; };  // as proc(5) counts
  facts.group = static_cast<std::int32_t>(field(5));
  // A terminal controls one session at most.
  const std::vector<std::uint64_t> ours = stat_fields(::getpid());
  const bool is_of_our_session = ours.size() >= kStatFieldsMin && field(6) == ours[6 - 3];
  facts.has_terminal = is_of_our_session && field(7) != 0 ? 1 : 0;
  facts.start_code = field(26);
  facts.end_code = field(27);
  facts.start_stack = field(28);
  facts.start_data = field(45);
  facts.end_data = field(46);
  facts.start_break = field(47);
  facts.kernel_break = field(47);
  facts.argument_start = field(48);
  facts.argument_end = field(49);
  facts.environment_start = field(50);
  facts.environment_end = field(51);
  copy_numbers(field_of(status, "Uid"), facts.user);
  copy_numbers(field_of(status, "Gid"), facts.group_ids);
  facts.creation_mask = static_cast<std::uint32_t>(number_of(field_of(status, "Umask"), 8));
  for (const std::uint64_t group : numbers_of(field_of(status, "Groups")))
    saved.groups.push_back(static_cast<std::uint32_t>(group));
  if (saved.groups.size() > kGroupsMax)
    return Status::failure(ENOTSUP, fmt::format("the program is in {} groups, more than {}",
                                                saved.groups.size(), kGroupsMax));
  facts.groups_count = static_cast<std::uint32_t>(saved.groups.size());
  facts.capabilities[0] = number_of(field_of(status, "CapInh"), 16);
  facts.capabilities[1] = number_of(field_of(status, "CapPrm"), 16);
  facts.capabilities[2] = number_of(field_of(status, "CapEff"), 16);
  facts.capabilities[3] = number_of(field_of(status, "CapBnd"), 16);
  facts.capabilities[4] = number_of(field_of(status, "CapAmb"), 16);
  facts.memory_score = std::atoi(read_proc(leader, "oom_score_adj").c_str());
  PAWL_TRY(capture_what_takes_privileges(process, status, saved));
  PAWL_TRY(capture_directory(leader, saved));
  saved.executable = read_proc_link(leader, "exe");
  return {};
}

// Timers are read before the signals that wait: of one that expires in between there is time left,
// and its signal waits, too.
Status read_expired_timers(Process& process, SavedProcess& saved) {
  constexpr int kSignals[kTimersCount] = {SIGALRM, SIGVTALRM, SIGPROF};
  if (std::none_of(std::begin(kSignals), std::end(kSignals),
                   [&](int signal) { return saved.waits(signal); }))
    return {};
  CallList& list = process.list();
  list.clear();
  const std::uint64_t place = list.place(kNoTimers, sizeof(kNoTimers));
  add_timer_calls(list, place);
  PAWL_TRY(process.run_list(process.leader()));
  itimerval found[kTimersCount];
  std::memcpy(found, list.data(place), sizeof(found));
  for (int timer = 0; timer < kTimersCount; ++timer) {
    if (saved.waits(kSignals[timer])) saved.process.timers[timer] = found[timer];
  }
  return {};
}

// A stopped program stops anew when it is given the signals that wait for it.
void keep_stopped(const Process& process, SavedProcess& saved) {
  const std::vector<pid_t> threads = process.threads();
  if (std::none_of(threads.begin(), threads.end(), tracing::is_in_group_stop)) return;
  siginfo_t& signal = saved.pending.emplace_back();
  signal.si_signo = SIGSTOP;
}

}  // namespace

Status capture_threads(Process& process, bool gives_way, SavedProcess& into) {
  PAWL_TRY(capture_process(process, into));
  const pid_t leader = process.leader();
  ProgramMemory memory(process.memory(), process.list(), leader);
  PAWL_TRY(capture_thread(process, leader, true, memory, into));
  for (const pid_t thread : process.threads()) {
    if (thread == leader) continue;
    if (gives_way) PAWL_TRY(process.give_way());
    PAWL_TRY(capture_thread(process, thread, false, memory, into));
  }
  // Behind the timers: of one that expires in between nothing is lost.
  into.pending = tracing::pending_signals(leader, true, kPendingSignalsMax);
  if (into.pending.size() >= kPendingSignalsMax) return too_many_signals();
  PAWL_TRY(read_expired_timers(process, into));
  keep_stopped(process, into);
  return {};
}

void capture_scheduling(const Urgency& urgency, const OneProcessor& one_processor,
                        SavedProcess& into) {
  const std::optional<cpu_set_t> all = OneProcessor::all();
  for (SavedThread& thread : into.threads) {
    const pid_t number = thread.facts.number;
    thread.facts.scheduling = urgency.before(number).value_or(Scheduling{});
    const std::optional<cpu_set_t> bound = one_processor.before(number);
    if (!all || !bound || CPU_EQUAL(&*all, &*bound)) continue;
    const auto bytes = std::as_bytes(std::span(&*bound, 1));
    thread.processors.assign(bytes.begin(), bytes.end());
  }
}

Status read_system_facts(pid_t process, const std::vector<MemoryArea>& lines, SystemFacts& into) {
  utsname names{};
  ::uname(&names);
  std::memcpy(into.release, names.release, std::min(sizeof(into.release), sizeof(names.release)));
  const Descriptor boot(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!boot.valid() || ::read(boot.get(), into.boot, sizeof(into.boot) - 4) <= 0)
    return FailedCall{errno, "cannot read the number of this boot"};
  std::uint64_t end = 0;
  for (const MemoryArea& line : lines) {
    if (!line.is_kernels() || line.name == "[vsyscall]") continue;
    if (into.vdso_start == 0) into.vdso_start = line.start;
    if (end != 0 && line.start != end)
      return Status::failure(ENOTSUP, "the kernel's own mappings are not beside each other");
    end = line.end;
    if (line.name != "[vdso]") continue;
    const Descriptor file(
        ::open(fmt::format("/proc/{}/mem", process).c_str(), O_RDONLY | O_CLOEXEC));
    std::vector<std::byte> code(line.bytes());
    if (!file.valid() ||
        ::pread(file.get(), code.data(), code.size(), static_cast<off_t>(line.start)) !=
            static_cast<ssize_t>(code.size()))
      return FailedCall{errno, "cannot read the vdso"};
    into.vdso_checksum = checksum(code.data(), code.size());
  }
  into.vdso_bytes = end - into.vdso_start;
  return {};
}

namespace {

// Which file it is, and what it is like.
Status read_mapped_file(const MemoryArea& line, const SavedProcess& program, MountTable& mounts,
                        MappingFacts& into) {
  const Result<MappedFile> mapped = find_mapped_file(line, program, mounts);
  if (!mapped.ok()) return mapped.status();
  const FileProof& proof = mapped.value().proof;
  into.is_certain = proof.is_certain ? 1 : 0;
  into.birth_time_ns = proof.birth_time_ns;
  into.device = proof.device;
  into.inode = proof.inode;
  into.file_bytes = mapped.value().bytes;
  into.changed_ns = mapped.value().changed_ns;
  return {};
}

Status check_unchanged(ChangedPages& changed, const MemoryArea& line) {
  if (line.is_shared) return {};
  const Result<bool> found = changed.are_in(line);
  if (!found.ok() || !found.value()) return found.status();
  return Status::failure(
      ENOTSUP,
      fmt::format("memory at {:x} ({}) was changed, where the program may only read the "
                  "file (by /proc/self/mem, a debugger's breakpoint or an uprobe): that is not "
                  "in the memory file; let the program make it writable (mprotect(2)) "
                  "before it is changed",
                  line.start, line.name));
}

}  // namespace

Status capture_mappings(Process& process, bool gives_way, SavedProcess& into) {
  const std::string text =
      read_proc(process.leader(), "maps", [&] { return gives_way && process.has_urgent(); });
  if (gives_way) PAWL_TRY(process.give_way());
  const std::vector<MemoryArea> lines = parse_maps(text);
  const std::uint64_t inode = process.memory().inode();
  if (lines.size() >= kMappingsMax)
    return Status::failure(ENOTSUP,
                           fmt::format("the program has {} mappings or more", kMappingsMax));
  into.origins = process.calls().origins();
  const MemoryArea* before = nullptr;  // of a file, which is this one
  MappingFacts file{};
  MountTable mounts(process.leader());
  ChangedPages changed(process.leader(), mounts,
                       [&] { return gives_way ? process.give_way() : Status{}; });
  for (const MemoryArea& line : lines) {
    if (line.is_kernels() || (line.start >= kAnnexCode && line.end <= kAnnexEnd)) continue;
    SavedMapping& mapping = into.mappings.emplace_back();
    MappingFacts& facts = mapping.facts;
    facts.start = line.start;
    facts.bytes = line.bytes();
    facts.protection = line.protection;
    facts.is_shared = line.is_shared ? 1 : 0;
    facts.offset = line.offset;
    if (line.is_shared && line.inode == inode) {
      if (line.offset != line.start)
        return Status::failure(ENOTSUP, fmt::format("memory at {:x} is not where it must be in the "
                                                    "memory file",
                                                    line.start));
      facts.is_memory = 1;
      continue;
    }
    if (line.inode == 0 || (line.protection & PROT_WRITE) != 0)
      return Status::failure(
          ENOTSUP, fmt::format("memory at {:x} ({}) is not in the memory file", line.start,
                               line.name.empty() ? "nameless" : line.name));
    PAWL_TRY(check_unchanged(changed, line));
    mapping.name = line.name;
    // Once for all of a library's mappings, which lie one behind the other.
    const bool is_as_before = before != nullptr && before->name == line.name &&
                              before->device == line.device && before->inode == line.inode;
    if (!is_as_before) PAWL_TRY(read_mapped_file(line, into, mounts, file));
    before = &line;
    facts.is_certain = file.is_certain;
    facts.birth_time_ns = file.birth_time_ns;
    facts.device = file.device;
    facts.inode = file.inode;
    facts.file_bytes = file.file_bytes;
    facts.changed_ns = file.changed_ns;
  }
  return read_system_facts(process.leader(), lines, into.system);
}

Status attach_threads(Process& process, const SavedProcess& saved) {
  for (const SavedThread& thread : saved.threads) {
    if (thread.facts.clear_address == 0 && thread.facts.robust_list == 0) continue;
    process.list().clear();
    process.list().add(SYS_set_tid_address, {thread.facts.clear_address});
    process.list().add(SYS_set_robust_list, {thread.facts.robust_list, thread.facts.robust_bytes});
    PAWL_TRY(process.run_list(thread.facts.number));
  }
  return {};
}

}  // namespace pawl::wsp
