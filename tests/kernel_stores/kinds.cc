#include "kernel_stores/kinds.h"

#include <pawl/store.h>

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

namespace pawl::kernel_stores {

namespace {

void fill(char* bytes, std::size_t count, std::uint32_t seed) {
  for (std::size_t i = 0; i + sizeof seed <= count; i += sizeof seed)
    std::memcpy(bytes + i, &seed, sizeof seed);
}

std::vector<char> pattern(std::uint32_t seed, std::size_t count = kPage) {
  std::vector<char> bytes(count);
  fill(bytes.data(), count, seed);
  return bytes;
}

std::uint32_t* word_in(char* page) { return reinterpret_cast<std::uint32_t*>(page + 1024); }

// What the neighbour is asked to do.
enum class Manner : int { vm_writev, proc_mem, poke };
struct Request {
  Manner manner = Manner::vm_writev;
  std::uint32_t seed = 0;
  char* page = nullptr;
};

bool poke(pid_t process, char* page, std::uint32_t seed) {
  if (ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0) return false;
  int status = 0;
  bool poked = ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr) == 0 &&
               waitpid(process, &status, __WALL) == process;
  const std::uint64_t word = seed;
  poked = poked && ptrace(PTRACE_POKEDATA, process, page + 64, word) == 0;
  return ptrace(PTRACE_DETACH, process, nullptr, nullptr) == 0 && poked;
}

[[noreturn]] void be_neighbour(pid_t process, int requests, int answers) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Request request;
  const std::string name = "/proc/" + std::to_string(process) + "/mem";
  const int memory = open(name.c_str(), O_RDWR | O_CLOEXEC);
  while (read(requests, &request, sizeof request) == sizeof request) {
    std::vector<char> bytes = pattern(request.seed, 512);
    bool stored = false;
    switch (request.manner) {
      case Manner::vm_writev: {
        const iovec from{bytes.data(), bytes.size()};
        const iovec to{request.page, bytes.size()};
        stored = process_vm_writev(process, &from, 1, &to, 1, 0) > 0;
        break;
      }
      case Manner::proc_mem:
        stored = pwrite(memory, bytes.data(), bytes.size(),
                        static_cast<off_t>(reinterpret_cast<std::uintptr_t>(request.page))) > 0;
        break;
      case Manner::poke:
        stored = poke(process, request.page, request.seed);
        break;
    }
    const char answer = stored ? 1 : 0;
    if (write(answers, &answer, 1) != 1) break;
  }
  _exit(0);
}

// Another process that stores into this one's memory when asked.
class Neighbour {
 public:
  Neighbour() {
    if (pipe2(requests_, O_CLOEXEC) != 0 || pipe2(answers_, O_CLOEXEC) != 0) return;
    const pid_t process = getpid();
    process_ = fork();
    if (process_ == 0) {
      close(requests_[1]);  // else their end is never seen
      be_neighbour(process, requests_[0], answers_[1]);
    }
    prctl(PR_SET_PTRACER, process_, 0, 0, 0);
  }
  ~Neighbour() {
    for (const int descriptor : {requests_[0], requests_[1], answers_[0], answers_[1]})
      close(descriptor);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  bool ask(Manner manner, char* page, std::uint32_t seed) const {
    const Request request{manner, seed, page};
    if (write(requests_[1], &request, sizeof request) != sizeof request) return false;
    char answer = 0;
    ssize_t count = 0;
    do count = read(answers_[0], &answer, 1);
    while (count < 0 && errno == EINTR);
    return count == 1 && answer == 1;
  }

 private:
  int requests_[2] = {-1, -1};
  int answers_[2] = {-1, -1};
  pid_t process_ = -1;
};

// An io_uring of one entry, by its system calls.
class Ring {
 public:
  Ring() {
    io_uring_params parameters{};
    descriptor_ = static_cast<int>(syscall(SYS_io_uring_setup, 1, &parameters));
    if (descriptor_ < 0) return;
    sq_ = map(parameters.sq_off.array + sizeof(std::uint32_t), IORING_OFF_SQ_RING);
    cq_ = map(parameters.cq_off.cqes + 2 * sizeof(io_uring_cqe), IORING_OFF_CQ_RING);
    entry_ = reinterpret_cast<io_uring_sqe*>(map(sizeof(io_uring_sqe), IORING_OFF_SQES));
    parameters_ = parameters;
  }
  ~Ring() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  bool ok() const { return descriptor_ >= 0 && sq_ != nullptr && cq_ != nullptr; }

  bool pin(char* page) const {
    const iovec buffer{page, kPage};
    return syscall(SYS_io_uring_register, descriptor_, IORING_REGISTER_BUFFERS, &buffer, 1) == 0;
  }
  void unpin() const {
    syscall(SYS_io_uring_register, descriptor_, IORING_UNREGISTER_BUFFERS, nullptr, 0);
  }

  bool read_once(int file, char* to, std::uint32_t bytes, bool is_pinned = false) const {
    std::memset(entry_, 0, sizeof *entry_);
    entry_->opcode = is_pinned ? IORING_OP_READ_FIXED : IORING_OP_READ;
    entry_->fd = file;
    entry_->addr = reinterpret_cast<std::uintptr_t>(to);
    entry_->len = bytes;
    auto* const tail = reinterpret_cast<std::uint32_t*>(sq_ + parameters_.sq_off.tail);
    reinterpret_cast<std::uint32_t*>(sq_ + parameters_.sq_off.array)[0] = 0;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, descriptor_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) != 1)
      return false;
    auto* const head = reinterpret_cast<std::uint32_t*>(cq_ + parameters_.cq_off.head);
    const auto* const mask =
        reinterpret_cast<const std::uint32_t*>(cq_ + parameters_.cq_off.ring_mask);
    const auto* const completions =
        reinterpret_cast<const io_uring_cqe*>(cq_ + parameters_.cq_off.cqes);
    const std::int32_t result = completions[*head & *mask].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result == static_cast<std::int32_t>(bytes);
  }

 private:
  char* map(std::size_t bytes, off_t offset) const {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, offset);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }

  int descriptor_ = -1;
  char* sq_ = nullptr;
  char* cq_ = nullptr;
  io_uring_sqe* entry_ = nullptr;
  io_uring_params parameters_{};
};

void do_nothing(int) {}

// The frame of a signal, on a stack in the page and those behind it.
bool signal_frame(char* page) {
  stack_t stack{};
  stack.ss_sp = page;
  stack.ss_size = 4 * kPage;
  stack_t before{};
  if (sigaltstack(&stack, &before) != 0) return false;
  struct sigaction action{};
  action.sa_handler = do_nothing;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  return sigaltstack(&before, nullptr) == 0;
}

int end_at_once(void*) { return 0; }

// The kernel writes a thread's number as it begins, and 0 as it ends.
bool thread_id(char* page) {
  static char* const stack = static_cast<char*>(
      mmap(nullptr, 16 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* const begun = reinterpret_cast<pid_t*>(page + 512);
  auto* const ended = reinterpret_cast<pid_t*>(page + 2048);
  *ended = 1;
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                    CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  if (clone(end_at_once, stack + 16 * kPage, flags, nullptr, begun, nullptr, ended) < 0)
    return false;
  while (__atomic_load_n(ended, __ATOMIC_ACQUIRE) != 0) {
    const timespec at_most{0, 1'000'000};
    syscall(SYS_futex, ended, FUTEX_WAIT, 1, &at_most, nullptr, 0);
  }
  return true;
}

// A mutex that its holder takes along as it ends: the kernel marks it.
bool robust_mutex(char* page) {
  auto* const mutex = reinterpret_cast<pthread_mutex_t*>(page + 256);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(mutex, &attributes);
  pthread_t holder;
  const auto hold = [](void* held) -> void* {
    pthread_mutex_lock(static_cast<pthread_mutex_t*>(held));
    return nullptr;
  };
  if (pthread_create(&holder, nullptr, hold, mutex) != 0) return false;
  pthread_join(holder, nullptr);
  return true;
}

bool priority_inheriting(char* page) {
  std::uint32_t* const word = word_in(page);
  __atomic_store_n(word, 0, __ATOMIC_RELEASE);
  return syscall(SYS_futex, word, FUTEX_LOCK_PI, 0, nullptr, nullptr, 0) == 0;
}

bool futex_operation(char* page, std::uint32_t seed) {
  static std::uint32_t other = 0;
  const auto operation = FUTEX_OP(FUTEX_OP_SET, static_cast<int>(seed & 0x7ff), FUTEX_OP_CMP_EQ, 1);
  return syscall(SYS_futex, &other, FUTEX_WAKE_OP, 1, 1, word_in(page), operation) >= 0;
}

}  // namespace

std::vector<Kind> make_kinds(const std::string& directory, std::vector<std::string>& refused) {
  std::vector<Kind> kinds;
  static int ends[2];
  static int sockets[2];
  if (pipe2(ends, O_CLOEXEC) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return {};

  kinds.push_back({"read", false, false, [](char* page, std::uint32_t seed) {
                     const std::vector<char> bytes = pattern(seed);
                     return write(ends[1], bytes.data(), kPage) == ssize_t{kPage} &&
                            read(ends[0], page, kPage) == ssize_t{kPage};
                   }});
  kinds.push_back({"recvmsg", false, false, [](char* page, std::uint32_t seed) {
                     const std::vector<char> bytes = pattern(seed, 1000);
                     iovec to{page + 100, bytes.size()};
                     msghdr message{};
                     message.msg_iov = &to;
                     message.msg_iovlen = 1;
                     return send(sockets[1], bytes.data(), bytes.size(), 0) == 1000 &&
                            recvmsg(sockets[0], &message, 0) == 1000;
                   }});
  kinds.push_back({"vmsplice", false, false, [](char* page, std::uint32_t seed) {
                     const std::vector<char> bytes = pattern(seed);
                     const iovec to{page, kPage};
                     if (write(ends[1], bytes.data(), kPage) != ssize_t{kPage}) return false;
                     if (vmsplice(ends[0], &to, 1, 0) == ssize_t{kPage}) return true;
                     std::vector<char> rest(kPage);  // the pipe is empty again
                     (void)!read(ends[0], rest.data(), kPage);
                     return false;
                   }});
  kinds.push_back({"getrandom", false, false, [](char* page, std::uint32_t) {
                     return syscall(SYS_getrandom, page + 64, 256, 0) == 256;
                   }});
  kinds.push_back({"process_vm_writev, own", false, false, [](char* page, std::uint32_t seed) {
                     std::vector<char> bytes = pattern(seed, 512);
                     const iovec from{bytes.data(), bytes.size()};
                     const iovec to{page, bytes.size()};
                     return process_vm_writev(getpid(), &from, 1, &to, 1, 0) > 0;
                   }});
  kinds.push_back({"futex operation", false, false, futex_operation});
  kinds.push_back({"priority-inheriting futex", false, false,
                   [](char* page, std::uint32_t) { return priority_inheriting(page); }});
  kinds.push_back(
      {"thread id", true, false, [](char* page, std::uint32_t) { return thread_id(page); }});
  kinds.push_back(
      {"robust mutex", true, false, [](char* page, std::uint32_t) { return robust_mutex(page); }});
  kinds.push_back(
      {"signal frame", true, false, [](char* page, std::uint32_t) { return signal_frame(page); }});

  const auto neighbour = std::make_shared<Neighbour>();
  static char probe[2 * kPage];
  const auto add_neighbours = [&](const std::string& name, Manner manner, bool beyond) {
    if (!neighbour->ask(manner, probe, 1)) {
      refused.push_back(name + ": another process may not store here");
      return;
    }
    kinds.push_back({name, beyond, true, [neighbour, manner](char* page, std::uint32_t seed) {
                       return neighbour->ask(manner, page, seed);
                     }});
  };
  add_neighbours("process_vm_writev", Manner::vm_writev, false);
  add_neighbours("/proc/PID/mem", Manner::proc_mem, true);
  add_neighbours("ptrace", Manner::poke, true);

  const std::string source = directory + "/source";
  static int direct;
  direct = open(source.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  void* const aligned =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto write_source = [aligned](std::uint32_t seed) {
    fill(static_cast<char*>(aligned), kPage, seed);
    return pwrite(direct, aligned, kPage, 0) == ssize_t{kPage};
  };
  if (direct < 0 || !write_source(1)) {
    refused.push_back("O_DIRECT: the file system has none");
  } else {
    kinds.push_back({"O_DIRECT", false, false, [write_source](char* page, std::uint32_t seed) {
                       return write_source(seed) && pread(direct, page, kPage, 0) == ssize_t{kPage};
                     }});
  }
  const auto ring = std::make_shared<Ring>();
  const int source_file = open(source.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (!ring->ok()) {
    refused.push_back("io_uring: the kernel refuses it");
  } else {
    kinds.push_back({"io_uring", false, false, [ring, source_file](char* page, std::uint32_t seed) {
                       const std::vector<char> bytes = pattern(seed);
                       return pwrite(source_file, bytes.data(), kPage, 0) == ssize_t{kPage} &&
                              ring->read_once(source_file, page, kPage);
                     }});
    // Pinned before its page is committed, and stored to after: no tracker sees that by itself.
    kinds.push_back(
        {"registered buffer", false, false, [ring, source_file](char* page, std::uint32_t seed) {
           const std::vector<char> bytes = pattern(seed);
           if (!ring->pin(page)) return false;
           const bool stored = pawl_msync(page, kPage, MS_SYNC) == 0 &&
                               pwrite(source_file, bytes.data(), kPage, 0) == ssize_t{kPage} &&
                               ring->read_once(source_file, page, kPage, true);
           pawl_stored(page, kPage);
           ring->unpin();
           return stored;
         }});
  }
  return kinds;
}

}  // namespace pawl::kernel_stores
