// What the image's records hold, as they lie there.  docs/wsp-run.md draws them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/user.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "medium/status.h"
#include "wsp/process/image.h"
#include "wsp/process/kept_memory.h"
#include "wsp/process/origins.h"
#include "wsp/process/urgency.h"

namespace pawl::wsp {

constexpr int kSignalsMax = 64;
constexpr std::size_t kVectorBytesMax = 16384;
constexpr std::size_t kPendingSignalsMax = 1024;
constexpr std::size_t kGroupsMax = 4096;  // as many as the list of calls has room for
constexpr int kLimitsCount = 16;
constexpr int kTimersCount = 3;  // ITIMER_REAL, _VIRTUAL, _PROF
constexpr std::size_t kThreadNameBytes = 16;
constexpr int kSpeculationsCount = 3;  // PR_SPEC_STORE_BYPASS, _INDIRECT_BRANCH, _L1D_FLUSH

// As rt_sigaction(2) takes it.
struct KernelAction {
  std::uint64_t handler;
  std::uint64_t flags;
  std::uint64_t restorer;
  std::uint64_t mask;
};

// Whose time the program is to see go on, and when that was.
constexpr int kKeptClocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME};

struct SystemFacts {
  char release[72];
  char boot[40];
  std::uint64_t clocks_ns[3];  // when it was saved, as the program saw them: kKeptClocks
  std::uint64_t vdso_bytes;    // of all of the kernel's mappings together
  std::uint64_t vdso_start;
  std::uint32_t vdso_checksum;  // of the code
  std::uint32_t padding;
};

// Which it is; all 0 where that is not known.
struct DirectoryFacts {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t birth_time_ns;
};

struct ProcessFacts {
  std::int32_t process;
  std::int32_t group;
  std::int32_t has_terminal;  // its controlling terminal is the supervisor's
  std::int32_t memory_descriptor;
  std::uint32_t user[4];  // real, effective, saved, file system
  std::uint32_t group_ids[4];
  std::uint32_t creation_mask;  // umask(2)
  std::uint32_t groups_count;   // that many follow, of 4 bytes each
  std::uint64_t break_end;
  std::uint64_t start_code, end_code, start_data, end_data, start_break, kernel_break, start_stack,
      argument_start, argument_end, environment_start, environment_end;
  DirectoryFacts directory;       // the current one
  std::uint64_t capabilities[5];  // inheritable, permitted, effective, bounding, ambient
  std::uint32_t secure_bits;
  std::int32_t is_dumpable;
  std::int32_t is_reaper;      // of children's children: prctl(2)
  std::int32_t memory_score;   // oom_score_adj
  std::uint32_t barriers;      // registered commands of membarrier(2)
  std::int32_t write_execute;  // PR_GET_MDWE
  std::int32_t huge_pages;     // PR_GET_THP_DISABLE
  std::int32_t padding;
  KernelAction actions[kSignalsMax];
  itimerval timers[kTimersCount];
  std::uint64_t limits[kLimitsCount][2];
};

struct ThreadFacts {
  std::int32_t number;
  std::uint32_t vector_bytes;   // that many follow
  std::uint32_t pending_count;  // and then as many siginfo_t
  std::uint32_t sequence_bytes;
  std::uint32_t sequence_signature;
  std::uint32_t padding;
  std::uint64_t sequence_address;
  user_regs_struct registers;
  std::uint64_t signal_mask;
  std::uint64_t clear_address;  // set_tid_address(2)
  std::uint64_t robust_list;
  std::uint64_t robust_bytes;
  stack_t alternate_stack;
  char name[kThreadNameBytes];
  std::uint32_t personality;
  std::int32_t has_no_new_privileges;
  std::int32_t death_signal;                     // when its parent ends
  std::int32_t speculation[kSpeculationsCount];  // PR_GET_SPECULATION_CTRL
  std::int32_t machine_check;                    // PR_MCE_KILL_GET
  std::int32_t time_stamps;                      // PR_GET_TSC
  Scheduling scheduling;                         // of no bytes when it is not known
};

struct MappingFacts {
  std::uint64_t start;
  std::uint64_t bytes;
  std::int32_t protection;
  std::int32_t is_memory;  // else a file, of which the rest and the name speak
  std::int32_t is_shared;
  std::int32_t is_certain;  // FileProof
  std::uint64_t offset;
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t file_bytes;
  std::int64_t changed_ns;
  std::uint64_t birth_time_ns;
};

// What a part of the memory in the file came from: wsp/process/origins.h.
struct OriginFacts {
  std::uint64_t start;
  std::uint64_t bytes;
  std::uint64_t offset;
  std::uint64_t inode;
  std::int32_t is_file;
  std::int32_t padding;
};

enum class DescriptorKind : std::uint32_t {
  file = 1,       // or a directory, or a device as /dev/null: opened again by its name
  inherited = 2,  // the supervisor's own standard stream
  pipe = 3,
  event_counter = 4,
  timer = 5,
  signals = 6,
  epoll = 7,
  listening = 8,  // a socket
  bound = 9,      // a datagram socket, or a stream that neither listens nor is connected
  reset = 10,     // a stream whose other end is gone
};

// As the kernel counts what shutdown(2) ended.
constexpr std::uint32_t kShutReceiving = 1;
constexpr std::uint32_t kShutSending = 2;

struct DescriptorFacts {
  std::int32_t number;
  std::uint32_t kind;
  std::int32_t same_as;  // the number of another one that is the same open file; or -1
  std::uint32_t flags;   // as fdinfo has them: O_CLOEXEC too
  std::uint64_t inode;
  std::uint64_t position;
  std::uint64_t device;
  std::uint64_t value;     // counter, mask, pipe's size, number of a device; of the name of a UNIX
                           // socket its type and mode, 0 where it has none
  std::int32_t standard;   // inherited: 0, 1 or 2
  std::int32_t clock;      // timer
  std::uint64_t times[2];  // timer: what is left, or such a deadline, and interval (ns); file:
                           // birth (ns), mount.h; such a name: user, group
  std::int32_t domain;     // socket
  std::int32_t type;       // of a socket; of a file, as in S_IFMT; of an eventfd: a semaphore?; of
                           // a timerfd the flags with which it was set
  std::int32_t protocol;
  std::int32_t backlog;
  std::uint32_t address_bytes;
  std::uint32_t peer_bytes;
  std::uint32_t user;  // whose a socket or a pipe is, and its mode: not those of a socket's name
  std::uint32_t group;
  std::uint32_t mode;
  std::uint32_t shut;        // of a socket: kShutReceiving, kShutSending
  sockaddr_storage address;  // wsp/process/interface_name.h
  sockaddr_storage peer;
};

struct SocketOption {
  std::int32_t level;
  std::int32_t name;
  std::uint32_t bytes;
  char value[20];  // of an interface its number, and behind that its name
};

struct SocketOwner {
  uid_t user;
  gid_t group;
};
// Of the name of a UNIX socket.
constexpr SocketOwner owner_of(const DescriptorFacts& facts) {
  return {static_cast<uid_t>(facts.times[0]), static_cast<gid_t>(facts.times[1])};
}

// A periodic timerfd that has expired, and that nobody has read since.
constexpr bool has_stopped(const DescriptorFacts& timer) {
  return timer.times[0] == 0 && timer.times[1] != 0;
}

// That clock goes on while there is no power: the deadline may be over behind a restore.
constexpr bool is_deadline_by_the_clock(const DescriptorFacts& timer) {
  return (timer.clock == CLOCK_REALTIME || timer.clock == CLOCK_REALTIME_ALARM) &&
         (timer.type & TFD_TIMER_ABSTIME) != 0;
}

struct EpollEntry {
  std::int32_t number;
  std::uint32_t events;
  std::uint64_t data;
};

struct SavedDescriptor {
  DescriptorFacts facts{};
  std::string text;  // a file's name; a pipe's bytes
  std::vector<SocketOption> options;
  std::vector<EpollEntry> entries;
  std::uint64_t identity = 0;  // of an eventfd, by what the kernel tells, else 0; in no record
  bool is_served = false;      // a file, of which a server knows more than was asked; in no record
};

struct SavedThread {
  ThreadFacts facts{};
  std::vector<std::byte> vectors;
  std::vector<siginfo_t> pending;
  std::vector<std::byte> processors;  // a cpu_set_t; empty when it may have all
};

struct SavedMapping {
  MappingFacts facts{};
  std::string name;
};

struct SavedProcess {
  SystemFacts system{};
  ProcessFacts process{};
  std::vector<std::uint32_t> groups;
  bool has_no_new_privileges = false;  // as the kernel says of the first thread; in no record
  std::string directory;               // the name of the current one
  std::string executable;              // its path
  std::vector<SavedThread> threads;    // the first is the process's own
  std::vector<SavedMapping> mappings;
  std::vector<Origin> origins;
  std::vector<SavedDescriptor> descriptors;
  std::vector<siginfo_t> pending;  // for the process as a whole

  bool waits(int signal) const {
    return std::any_of(pending.begin(), pending.end(),
                       [signal](const siginfo_t& one) { return one.si_signo == signal; });
  }
};

void write_records(ImageWriter& writer, const SavedProcess& process);
// How much of the image it takes, at least.
std::size_t record_bytes(const SavedDescriptor& descriptor);
// As read_image(); EBADMSG where a record is not as it must be.
Result<SavedProcess> read_saved(const KeptMemory& memory);
Result<SavedProcess> read_saved(std::span<const std::byte> image, std::uint64_t generation,
                                std::uint64_t memory_inode);

}  // namespace pawl::wsp
