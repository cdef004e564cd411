#include "wsp/process/restore.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <iterator>
#include <map>
#include <span>

#include "medium/descriptor.h"
#include "tracing/filter.h"
#include "tracing/thread.h"
#include "wsp/process/bounded_child.h"
#include "wsp/process/capture.h"
#include "wsp/process/directory_check.h"
#include "wsp/process/ended_connection.h"
#include "wsp/process/ending_signals.h"
#include "wsp/process/epoll_sets.h"
#include "wsp/process/file_check.h"
#include "wsp/process/file_proof.h"
#include "wsp/process/given_rights.h"
#include "wsp/process/image.h"
#include "wsp/process/internet_socket.h"
#include "wsp/process/maps.h"
#include "wsp/process/object_owner.h"
#include "wsp/process/proc.h"
#include "wsp/process/program_rights.h"
#include "wsp/process/rebuild_descriptors.h"
#include "wsp/process/records.h"
#include "wsp/process/refusals.h"
#include "wsp/process/restore_means.h"
#include "wsp/process/restore_rights.h"
#include "wsp/process/shared_ports.h"
#include "wsp/process/socket_name.h"
#include "wsp/process/spare_numbers.h"
#include "wsp/process/terminal_streams.h"
#include "wsp/process/time_space.h"
#include "wsp/process/watched_streams.h"

namespace pawl::wsp {

namespace {

constexpr long kRestoreOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                                 PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                                 PTRACE_O_TRACESECCOMP;
constexpr std::uint64_t kThreadFlags =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
constexpr std::uint64_t kSetBytes = 8;
constexpr std::uint64_t kSetWriteExecute = 65;  // PR_SET_MDWE, which Debian 12 does not name
constexpr std::uint64_t kUnregister = 1;        // RSEQ_FLAG_UNREGISTER
constexpr std::size_t kErrorBytesMax = 4096;
constexpr std::chrono::seconds kCheckedServerMax{20};  // which may have to wake up

// As clone3(2) takes it.
struct CloneArguments {
  std::uint64_t flags = 0, pidfd = 0, child_tid = 0, parent_tid = 0, exit_signal = 0, stack = 0,
                stack_size = 0, tls = 0, set_tid = 0, set_tid_size = 0, cgroup = 0;
};

struct NumberedFile {
  int number = -1;  // at which the new process has it
  FileProof had;
};

// The files that are mapped, each once.
std::map<std::string, NumberedFile> number_files(const SavedProcess& saved, SpareNumbers& spare) {
  std::map<std::string, NumberedFile> files;
  for (const SavedMapping& mapping : saved.mappings) {
    if (mapping.facts.is_memory == 0 && !files.contains(mapping.name))
      files.emplace(mapping.name, NumberedFile{spare.next(), proof_of(mapping.facts)});
  }
  return files;
}

// By the clock of an alarm it takes a privilege.
Status check_timer(const DescriptorFacts& facts) {
  const Descriptor timer(::timerfd_create(facts.clock, TFD_CLOEXEC));
  return timer.valid() ? Status{} : FailedCall{errno, "a timerfd"};
}

Status check_descriptor(const SavedDescriptor& descriptor, const SavedProcess& saved) {
  switch (static_cast<DescriptorKind>(descriptor.facts.kind)) {
    case DescriptorKind::listening:
    case DescriptorKind::bound:
      PAWL_TRY(check_bound_socket(descriptor, saved));
      return check_socket_name(descriptor.facts, saved);
    case DescriptorKind::file:
      // Of its own files the kernel asks for the effective user.
      return descriptor.facts.inode == 0 ? open_again(descriptor, saved).status() : Status{};
    case DescriptorKind::reset:
    case DescriptorKind::pipe:
      return check_owner(saved, descriptor.facts);
    case DescriptorKind::timer:
      return check_timer(descriptor.facts);
    default:
      return {};
  }
}

template <class Check>
Status check_one(const SavedDescriptor& descriptor, const char* failed, Check check) {
  if (descriptor.facts.same_as >= 0) return {};
  Status found = check(descriptor);
  if (found.ok()) return found;
  return found.with_text(
      fmt::format("descriptor {} {}: {}", descriptor.facts.number, failed, found.text()));
}

// As the process does that becomes the program.
Status check_descriptors(const SavedProcess& saved) {
  // Each by itself, and behind them what they are together.
  return try_restoring_each(saved.descriptors.size() + 2, [&saved](std::size_t index) {
    ProgramRights::take_whole_ones();
    if (index == saved.descriptors.size()) return check_pipes(saved);
    if (index > saved.descriptors.size()) return check_epoll_watches(saved);
    return check_one(saved.descriptors[index], "cannot be opened again",
                     [&saved](const SavedDescriptor& descriptor) {
                       return check_descriptor(descriptor, saved);
                     });
  });
}

Status check_unshared(const SavedProcess& saved) {
  const auto check = [&saved](const SavedDescriptor& one) {
    const auto kind = static_cast<DescriptorKind>(one.facts.kind);
    const bool is_socket = kind == DescriptorKind::listening || kind == DescriptorKind::bound;
    return is_socket ? check_unshared_address(one, saved) : Status{};
  };
  for (const SavedDescriptor& descriptor : saved.descriptors)
    PAWL_TRY(check_one(descriptor, "would not be the program's alone", check));
  return {};
}

Status check_system(const SavedProcess& saved) {
  SystemFacts here{};
  PAWL_TRY(read_system_facts(::getpid(), read_maps(::getpid()), here));
  if (std::strncmp(here.release, saved.system.release, sizeof(here.release)) != 0 ||
      here.vdso_bytes != saved.system.vdso_bytes ||
      here.vdso_checksum != saved.system.vdso_checksum)
    return Status::failure(ENOTSUP,
                           fmt::format("it was saved under another kernel ({}, here {}): its code "
                                       "is in the program's memory; start that kernel again",
                                       saved.system.release, here.release));
  return {};
}

// ------------------------------------------------------------------------------ in the new process

class Become {
 public:
  Become(const KeptMemory& memory, const SavedProcess& saved,
         const std::map<std::string, NumberedFile>& files, SpareNumbers spare, int go, int told,
         const SharedBytes& at)
      : memory_(memory),
        saved_(saved),
        files_(files),
        spare_(std::move(spare)),
        go_(go),
        told_(told),
        at_(at) {}

  [[noreturn]] void run() {
    char word = 0;
    if (::read(go_, &word, 1) != 1) ::_exit(127);
    const Status done = prepare();
    if (!done.ok()) {
      const std::string& text = done.text();
      if (::write(told_, text.data(), text.size()) < 0) ::_exit(126);
      ::_exit(127);
    }
    // No call is left to make: the code says that it is done, which the supervisor waits for.
    asm volatile(
        "xorq %%r12, %%r12\n\t"
        "jmp *%0"
        :
        : "r"(kAnnexCode)
        : "r12", "memory");
    __builtin_unreachable();
  }

 private:
  Status prepare() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ProgramRights::take_whole_ones();
    const ProcessFacts& facts = saved_.process;
    // Else it would read what is typed into the terminal of who restores it, and type there itself.
    if (facts.has_terminal == 0 || !is_of_our_user(facts)) {
      if (::setsid() < 0) return FailedCall{errno, "cannot begin a session"};
    } else if (facts.group == facts.process) {
      ::setpgid(0, 0);
    }
    at_.note(saved_.directory);
    PAWL_TRY(go_to_directory(saved_));
    ::umask(facts.creation_mask);
    PAWL_TRY(raise_limit());
    // Out of the way of the program's numbers, and of those of the mapped files.
    close_all_but({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, told_, memory_.memory()});
    const auto put_aside = [this](int number) {
      return ::dup3(number, spare_.next_closed(), O_CLOEXEC);
    };
    told_ = put_aside(told_);
    const int list = put_aside(memory_.memory());
    StandardStreams standard{};
    for (int stream = 0; stream < 3; ++stream) standard[stream] = put_aside(stream);
    std::vector<int> kept{told_, list};
    for (const auto& [name, file] : files_) {
      at_.note(name);
      // Nothing else is open by then, which may have the number.
      Result<Descriptor> opened = open_mapped(name, file.had, saved_);
      if (!opened.ok()) return opened.status();
      if (!move_descriptor(opened.value().release(), file.number, false))
        return FailedCall{errno, "cannot open " + name};
      kept.push_back(file.number);
    }
    PAWL_TRY(rebuild_descriptors(saved_, spare_, standard, kept, at_));
    if (::dup2(list, facts.memory_descriptor) < 0)
      return FailedCall{errno, "cannot give the memory file to the program"};
    ::close(list);
    PAWL_TRY(map_annex());
    const std::vector<sock_filter> filter =
        tracing::make_filter(all_rules(facts.memory_descriptor), tracing::OtherTables::fail);
    ::fcntl(told_, F_SETFD, 0);
    if (const int error_number = tracing::install_filter(filter); error_number != 0)
      return FailedCall{error_number, "the kernel refuses a seccomp filter"};
    ::close(told_);
    return {};
  }

  Status raise_limit() const {
    PAWL_TRY(check_descriptor_limit(saved_));
    const rlim_t needed = descriptors_needed(saved_);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::max(limit.rlim_cur, needed);
    limit.rlim_max = std::max(limit.rlim_max, needed);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
      return FailedCall{errno, "cannot have as many descriptors as the program takes"};
    return {};
  }

  Status map_annex() const {
    constexpr int kBoth = PROT_READ | PROT_WRITE;
    auto* const code_place =
        reinterpret_cast<void*>(kAnnexCode);  // NOLINT(performance-no-int-to-ptr)
    auto* const list_place =
        reinterpret_cast<void*>(kAnnexList);  // NOLINT(performance-no-int-to-ptr)
    void* const code = ::mmap(code_place, kPageBytes, PROT_READ | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (code == MAP_FAILED) return FailedCall{errno, "cannot map the annex"};
    const std::span<const std::byte> bytes = annex_code();
    // What was writable may never be executable here (PR_SET_MDWE, and what systemd has for it); or
    // else what is not writable may not be written (the kernel's proc_mem.force_override).
    const Descriptor own(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    const bool is_written =
        own.valid() && ::pwrite(own.get(), bytes.data(), bytes.size(), kAnnexCode) ==
                           static_cast<ssize_t>(bytes.size());
    if (!is_written) {
      if (::mprotect(code, kPageBytes, kBoth) != 0)
        return FailedCall{errno, "cannot write the annex"};
      std::memcpy(code, bytes.data(), bytes.size());
      if (::mprotect(code, kPageBytes, PROT_READ | PROT_EXEC) != 0)
        return FailedCall{errno, "cannot execute the annex"};
    }
    void* const list = ::mmap(list_place, kAnnexListBytes, kBoth,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (list == MAP_FAILED) return FailedCall{errno, "cannot map the annex"};
    return {};
  }

  const KeptMemory& memory_;
  const SavedProcess& saved_;
  const std::map<std::string, NumberedFile>& files_;
  SpareNumbers spare_;
  int go_;
  int told_;
  const SharedBytes& at_;
};

// ------------------------------------------------------------------------------ in the supervisor

class Restore {
 public:
  Restore(KeptMemory& memory, SavedProcess saved, const EndingSignals& ending_signals,
          const StepHook& hook)
      : memory_(memory),
        ending_signals_(ending_signals),
        saved_(std::move(saved)),
        spare_(saved_),
        files_(number_files(saved_, spare_)),
        hook_(hook) {}
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

  ~Restore() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    tracing::wait_for_end(child_);
  }

  Result<std::unique_ptr<Process>> run(Process::Tell tell) {
    step();
    PAWL_TRY(make_process());
    step();
    PAWL_TRY(place_memory());
    PAWL_TRY(register_barriers());
    step();
    PAWL_TRY(make_threads());
    step();
    PAWL_TRY(give_process_its_own());
    for (const SavedThread& thread : saved_.threads) PAWL_TRY(give_thread_its_own(thread));
    // Behind the signals, of which more may wait than it may be sent by now; before the privileges.
    GivenRights rights(saved_, list_,
                       [this](pid_t thread, const char* what) { return run_list(thread, what); });
    PAWL_TRY(rights.give_limits(child_));
    for (const SavedThread& thread : saved_.threads) {
      PAWL_TRY(rights.give_privileges(thread.facts));
      PAWL_TRY(give_registers(thread));
    }
    // Not before the last thread has no more than the program had: what the kernel reads there lies
    // in memory that others may share, and says where a thread goes on that it interrupts.
    for (const SavedThread& thread : saved_.threads) PAWL_TRY(give_sequence(thread.facts));
    PAWL_TRY(give_what_may_be_given());
    step();
    // From here on it is this process or none.
    ending_signals_.wait_again();
    PAWL_TRY(memory_.begin_generation());
    step();
    remove_marker(memory_.image());
    PAWL_TRY(memory_.flush_image());
    step();
    std::vector<pid_t> numbers;
    for (const SavedThread& thread : saved_.threads) numbers.push_back(thread.facts.number);
    auto process = std::make_unique<Process>(memory_, std::exchange(child_, 0), numbers,
                                             saved_.process.memory_descriptor, std::move(tell));
    process->list() = std::move(list_);
    for (const SavedMapping& mapping : saved_.mappings)
      process->calls().adopt_mapping(mapping.facts.start, mapping.facts.bytes);
    for (const Origin& origin : saved_.origins) process->calls().adopt_origin(origin);
    process->calls().adopt_break(saved_.process.break_end);
    PAWL_TRY(attach_threads(*process, saved_));
    PAWL_TRY(set_timers(*process));
    return process;
  }

 private:
  void step() {
    ++step_;
    if (hook_) hook_(step_);
  }

  Status make_process() {
    int go[2];
    int told[2];
    if (::pipe2(go, O_CLOEXEC) != 0) return FailedCall{errno, "cannot make a pipe"};
    Descriptor go_reading(go[0]);
    Descriptor go_writing(go[1]);
    if (::pipe2(told, O_CLOEXEC) != 0) return FailedCall{errno, "cannot make a pipe"};
    Descriptor told_reading(told[0]);
    Descriptor told_writing(told[1]);
    const SharedBytes at(PATH_MAX);
    PAWL_TRY(set_clocks_of_children(saved_.system, memory_.directory().path()));
    pid_t wanted = saved_.process.process;
    CloneArguments arguments;
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<std::uint64_t>(&wanted);
    arguments.set_tid_size = 1;
    const long child = ::syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (child < 0) return cannot_have_number(errno, wanted);
    if (child == 0) {
      go_writing.reset(-1);
      Become(memory_, saved_, files_, spare_, go_reading.get(), told_writing.get(), at).run();
    }
    child_ = static_cast<pid_t>(child);
    if (::ptrace(PTRACE_SEIZE, child_, nullptr, kRestoreOptions) != 0)
      return FailedCall{errno, "cannot trace the program; ptrace(2) is refused here"};
    told_writing.reset(-1);
    if (::write(go_writing.get(), "g", 1) != 1)
      return FailedCall{errno, "cannot start the program"};
    int status = 0;
    const Ran ran = wait_for_annex(child_, status, kCheckedServerMax.count());
    if (ran == Ran::done) return list_.open_program(child_);
    if (ran == Ran::failed) {
      const std::string name = at.noted();
      return name.empty()
                 ? Status::failure(ETIMEDOUT, "the new process does not become the program")
                 : server_is_silent(name);
    }
    child_ = 0;
    std::string text(kErrorBytesMax, 0);
    const ssize_t length = ::read(told_reading.get(), text.data(), text.size());
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return Status::failure(ECANCELED, text.empty() ? "the new process ended before it was the "
                                                     "program"
                                                   : text);
  }

  Status cannot_have_number(int error_number, pid_t wanted) const {
    if (error_number == EEXIST && wanted == ::getpid())
      return Status::failure(EEXIST,
                             fmt::format("the program needs the number {}, which this command "
                                         "itself has got; start it again",
                                         wanted));
    if (error_number == EEXIST)
      return Status::failure(
          EEXIST,
          fmt::format("process or thread {} is there, and the program needs its number; end it, or "
                      "restore in a space of numbers of its own: unshare --pid --fork "
                      "--mount-proc pawl wsp restore",
                      wanted));
    if (error_number == EPERM) PAWL_TRY(check_restore_rights(memory_.directory().path()));
    return FailedCall{error_number, fmt::format("cannot make thread {}", wanted)};
  }

  // What the list holds, by this thread.
  Status run_list(pid_t thread, const char* what) {
    int status = 0;
    const Ran ran = run_calls(thread, list_, status);
    if (ran == Ran::ended && thread == child_) child_ = 0;
    if (ran != Ran::done)
      return Status::failure(ECANCELED, std::string("the new process ended: ") + what);
    return list_.first_failure(what);
  }

  // For one call more, with so many bytes of data.
  Status make_room(pid_t thread, std::size_t data_bytes, const char* what) {
    if (list_.has_room(data_bytes)) return {};
    PAWL_TRY(run_list(thread, what));
    list_.clear();
    return {};
  }

  Status place_memory() {
    const std::vector<MemoryArea> lines = read_maps(child_);
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    for (const MemoryArea& line : lines) {
      if (!line.is_kernels() || line.name == "[vsyscall]") continue;
      if (start == 0) start = line.start;
      end = line.end;
    }
    list_.clear();
    const tracing::RestartableSequence ours = tracing::restartable_sequence(child_);
    if (ours.address != 0)
      list_.add(SYS_rseq, {ours.address, ours.bytes, kUnregister, ours.signature});
    list_.add(SYS_munmap, {kPageBytes, kAnnexCode - kPageBytes});
    list_.add(SYS_munmap, {kAnnexEnd, start - kAnnexEnd});
    list_.add(SYS_munmap, {end, kUserEnd - end});
    // By way of a third place: the two may overlap.
    for (const bool is_second : {false, true}) {
      if (start == saved_.system.vdso_start) break;
      for (const MemoryArea& line : lines) {
        if (!line.is_kernels() || line.name == "[vsyscall]") continue;
        const std::uint64_t within = line.start - start;
        const std::uint64_t from = is_second ? kFilesStart + within : line.start;
        const std::uint64_t to = (is_second ? saved_.system.vdso_start : kFilesStart) + within;
        list_.add(SYS_mremap,
                  {from, line.bytes(), line.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, to});
      }
    }
    PAWL_TRY(run_list(child_, "cannot clear the new process's memory"));
    return map_memory();
  }

  Status map_memory() {
    constexpr const char* kWhat = "cannot map the program's memory";
    list_.clear();
    for (const SavedMapping& mapping : saved_.mappings) {
      const MappingFacts& facts = mapping.facts;
      if (!list_.has_room()) {
        PAWL_TRY(run_list(child_, kWhat));
        list_.clear();
      }
      const bool is_shared = facts.is_memory != 0 || facts.is_shared != 0;
      const int file =
          facts.is_memory != 0 ? saved_.process.memory_descriptor : files_.at(mapping.name).number;
      list_.add(
          SYS_mmap,
          {facts.start, facts.bytes, static_cast<std::uint64_t>(facts.protection),
           static_cast<std::uint64_t>(MAP_FIXED | (is_shared ? MAP_SHARED : MAP_PRIVATE)),
           static_cast<std::uint64_t>(file), facts.is_memory != 0 ? facts.start : facts.offset});
    }
    PAWL_TRY(run_list(child_, kWhat));
    list_.clear();
    for (const auto& [name, mapped] : files_) {
      if (!list_.has_room()) {
        PAWL_TRY(run_list(child_, "cannot close a mapped file"));
        list_.clear();
      }
      list_.add(SYS_close, {static_cast<std::uint64_t>(mapped.number)});
    }
    return run_list(child_, "cannot close a mapped file");
  }

  // While there is one thread: with more of them the kernel waits for all processors.
  Status register_barriers() {
    list_.clear();
    for (std::uint64_t bit = 1; bit <= saved_.process.barriers; bit <<= 1) {
      if ((saved_.process.barriers & bit) != 0) list_.add(SYS_membarrier, {bit, 0, 0});
    }
    return run_list(child_, "cannot register the process for membarrier(2)");
  }

  Status make_threads() {
    for (const SavedThread& thread : saved_.threads) {
      const pid_t number = thread.facts.number;
      if (number == child_) continue;
      list_.clear();
      CloneArguments arguments;
      arguments.flags = kThreadFlags;
      arguments.set_tid = list_.place(&number, sizeof(number));
      arguments.set_tid_size = 1;
      list_.add(SYS_clone3, {list_.place(&arguments, sizeof(arguments)), sizeof(arguments)});
      Status made = run_list(child_, "cannot make a thread");
      if (!made.ok() && list_.call(0).failed())
        return cannot_have_number(list_.call(0).error_number(), number);
      PAWL_TRY(made);
      int status = 0;
      if (wait_for_stop(number, status, kCallsSecondsMax) != Ran::done)
        return Status::failure(ECANCELED, fmt::format("thread {} ended at once", number));
    }
    return {};
  }

  Status give_process_its_own() {
    const ProcessFacts& facts = saved_.process;
    list_.clear();
    for (std::uint64_t signal = 1; signal <= kSignalsMax; ++signal) {
      if (signal == SIGKILL || signal == SIGSTOP) continue;
      const std::uint64_t action =
          list_.place(&facts.actions[signal - 1], sizeof(facts.actions[0]));
      list_.add(SYS_rt_sigaction, {signal, action, 0, kSetBytes});
    }
    for (siginfo_t information : saved_.pending) {
      PAWL_TRY(make_room(child_, sizeof(information), "cannot give the process its signals"));
      const std::uint64_t place = list_.place(&information, sizeof(information));
      list_.add(SYS_rt_sigqueueinfo, {static_cast<std::uint64_t>(child_),
                                      static_cast<std::uint64_t>(information.si_signo), place});
    }
    PAWL_TRY(run_list(child_, "cannot give the process its state"));
    return name_memory();
  }

  // So that ps(1) shows the program's name and arguments; without it all else is well.
  Status name_memory() {
    const ProcessFacts& facts = saved_.process;
    prctl_mm_map map{};
    map.start_code = facts.start_code;
    map.end_code = facts.end_code;
    map.start_data = facts.start_data;
    map.end_data = facts.end_data;
    map.start_brk = facts.start_break;
    map.brk = facts.kernel_break;
    map.start_stack = facts.start_stack;
    map.arg_start = facts.argument_start;
    map.arg_end = facts.argument_end;
    map.env_start = facts.environment_start;
    map.env_end = facts.environment_end;
    map.exe_fd = ~0U;
    list_.clear();
    list_.add(SYS_prctl,
              {PR_SET_MM, PR_SET_MM_MAP, list_.place(&map, sizeof(map)), sizeof(map), 0});
    int status = 0;
    if (run_calls(child_, list_, status) != Ran::done)
      return Status::failure(ECANCELED, "the new process ended");
    return {};
  }

  // What the program does without rather than not run at all, where we may not set it.
  Status give_what_may_be_given() {
    const ProcessFacts& facts = saved_.process;
    list_.clear();
    if (facts.is_reaper != 0) list_.add(SYS_prctl, {PR_SET_CHILD_SUBREAPER, 1});
    // The first bit switches, the others say how.
    const auto huge = static_cast<std::uint64_t>(facts.huge_pages);
    if (huge != 0) list_.add(SYS_prctl, {PR_SET_THP_DISABLE, huge & 1, huge & ~1ULL});
    // All is mapped by now.
    if (facts.write_execute != 0)
      list_.add(SYS_prctl, {kSetWriteExecute, static_cast<std::uint64_t>(facts.write_execute)});
    // A change of user has made it less; 2 cannot be asked for.
    if (facts.is_dumpable == 0 || facts.is_dumpable == 1)
      list_.add(SYS_prctl, {PR_SET_DUMPABLE, static_cast<std::uint64_t>(facts.is_dumpable)});
    PAWL_TRY(run_list(child_, "cannot give the process its attributes"));
    const std::string score = std::to_string(facts.memory_score);
    const Descriptor file(
        ::open(fmt::format("/proc/{}/oom_score_adj", child_).c_str(), O_WRONLY | O_CLOEXEC));
    if (file.valid()) (void)!::write(file.get(), score.data(), score.size());
    for (const SavedThread& thread : saved_.threads) {
      const ThreadFacts& its = thread.facts;
      if (its.scheduling.bytes != 0) schedule(its.number, its.scheduling);
      cpu_set_t processors;
      if (thread.processors.size() != sizeof(processors)) continue;
      std::memcpy(&processors, thread.processors.data(), sizeof(processors));
      ::sched_setaffinity(its.number, sizeof(processors), &processors);
    }
    return {};
  }

  // Where they are not as the thread has them from us.
  void add_processor_settings(const ThreadFacts& facts) {
    for (int which = 0; which < kSpeculationsCount; ++which) {
      const int its = facts.speculation[which];
      if (its == ::prctl(PR_GET_SPECULATION_CTRL, which, 0, 0, 0)) continue;
      if (its > 0 && (its & PR_SPEC_PRCTL) != 0)
        list_.add(SYS_prctl, {PR_SET_SPECULATION_CTRL, static_cast<std::uint64_t>(which),
                              static_cast<std::uint64_t>(its) & ~std::uint64_t{PR_SPEC_PRCTL}});
    }
    if (facts.machine_check >= 0)
      list_.add(SYS_prctl,
                {PR_MCE_KILL, PR_MCE_KILL_SET, static_cast<std::uint64_t>(facts.machine_check)});
    if (facts.time_stamps != PR_TSC_ENABLE)
      list_.add(SYS_prctl, {PR_SET_TSC, static_cast<std::uint64_t>(facts.time_stamps)});
  }

  Status give_thread_its_own(const SavedThread& thread) {
    const ThreadFacts& facts = thread.facts;
    list_.clear();
    stack_t stack = facts.alternate_stack;
    stack.ss_flags &= ~SS_ONSTACK;
    list_.add(SYS_sigaltstack, {list_.place(&stack, sizeof(stack)), 0});
    list_.add(SYS_prctl, {PR_SET_NAME, list_.place(facts.name, sizeof(facts.name))});
    add_processor_settings(facts);
    for (siginfo_t information : thread.pending) {
      PAWL_TRY(make_room(facts.number, sizeof(information), "cannot give a thread its signals"));
      const std::uint64_t place = list_.place(&information, sizeof(information));
      list_.add(SYS_rt_tgsigqueueinfo,
                {static_cast<std::uint64_t>(child_), static_cast<std::uint64_t>(facts.number),
                 static_cast<std::uint64_t>(information.si_signo), place});
    }
    return run_list(facts.number, "cannot give a thread its state");
  }

  Status give_sequence(const ThreadFacts& facts) {
    if (facts.sequence_address == 0) return {};
    list_.clear();
    list_.add(SYS_rseq,
              {facts.sequence_address, facts.sequence_bytes, 0, facts.sequence_signature});
    return run_list(facts.number, "cannot give a thread its restartable sequences");
  }

  Status give_registers(const SavedThread& thread) {
    const ThreadFacts& facts = thread.facts;
    if (!tracing::write_vector_state(facts.number, thread.vectors) ||
        !tracing::write_registers(facts.number, facts.registers) ||
        !tracing::write_signal_mask(facts.number, facts.signal_mask))
      return Status::failure(ENOTSUP, "this processor does not take the program's registers");
    return {};
  }

  // What runs from now on.
  Status set_timers(Process& process) {
    CallList& list = process.list();
    list.clear();
    for (std::uint64_t timer = 0; timer < kTimersCount; ++timer) {
      itimerval its = saved_.process.timers[timer];
      // One whose signal waits stands still until the program takes that. Set to zero it would have
      // no interval any more. So it expires at once, and adds nothing to the signal that waits.
      // Where none waits, it was thrown away, and the timer stands still for good.
      if (timer == ITIMER_REAL && !timerisset(&its.it_value) && timerisset(&its.it_interval) &&
          saved_.waits(SIGALRM))
        its.it_value.tv_usec = 1;
      list.add(SYS_setitimer, {timer, list.place(&its, sizeof(its)), 0});
    }
    return process.run_list(process.leader());
  }

  KeptMemory& memory_;
  const EndingSignals& ending_signals_;
  SavedProcess saved_;
  SpareNumbers spare_;
  const std::map<std::string, NumberedFile> files_;
  const StepHook& hook_;
  CallList list_;
  pid_t child_ = 0;
  int step_ = 0;
};

Result<SavedProcess> read_restorable(const KeptMemory& memory) {
  Result<SavedProcess> saved = read_saved(memory);
  if (!saved.ok()) return saved;
  PAWL_TRY(check_system(saved.value()));
  PAWL_TRY(check_clocks(saved.value().system, memory.directory().path()));
  PAWL_TRY(check_directory(saved.value(), kCheckedServerMax));
  PAWL_TRY(check_saved_files(saved.value(), memory, kCheckedServerMax));
  PAWL_TRY(check_descriptors(saved.value()));
  PAWL_TRY(check_watched_streams(saved.value()));
  PAWL_TRY(check_descriptor_limit(saved.value()));
  PAWL_TRY(check_ended_connections(saved.value()));
  return saved;
}

}  // namespace

Status check_restorable(const KeptMemory& memory) {
  const auto saved = read_restorable(memory);
  if (!saved.ok()) return saved.status();
  PAWL_TRY(SharedPorts(saved.value()).try_all());
  PAWL_TRY(check_unshared(saved.value()));
  PAWL_TRY(check_restore_rights(memory.directory().path()));
  PAWL_TRY(check_means(saved.value()));
  return check_rights(saved.value());
}

Result<std::unique_ptr<Process>> restore(KeptMemory& memory, Process::Tell tell,
                                         const StepHook& hook) {
  const EndingSignals ending_signals;
  Result<SavedProcess> saved = read_restorable(memory);
  if (!saved.ok()) return saved.status();
  if (!is_of_our_user(saved.value().process)) PAWL_TRY(give_up_reading_of_terminal());
  PAWL_TRY(make_input_watchable(saved.value()));
  // Of this process, too, whose saves make processes later.
  raise_limits(saved.value());
  return Restore(memory, std::move(saved.value()), ending_signals, hook).run(std::move(tell));
}

}  // namespace pawl::wsp
