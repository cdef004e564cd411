#include "wsp/process/memory_calls.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "medium/descriptor.h"
#include "wsp/process/conversion.h"
#include "wsp/process/file_proof.h"
#include "wsp/process/mapped_file.h"
#include "wsp/process/maps.h"
#include "wsp/process/proc.h"
#include "wsp/process/program_rights.h"

namespace pawl::wsp {

namespace {

using Kind = CallDecision::Kind;
constexpr std::uint64_t kErrorsFrom = static_cast<std::uint64_t>(-4095);
constexpr std::uint64_t kTypeBits = 0x0f;  // MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE
constexpr std::uint64_t kFixedBits = MAP_FIXED | MAP_FIXED_NOREPLACE;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

CallDecision answer(std::uint64_t value) { return {Kind::answer, value, {}, {}}; }

CallDecision refuse(int error_number, const std::string& why) {
  return {Kind::answer, static_cast<std::uint64_t>(-error_number), {}, why};
}

CallDecision again() { return {Kind::again, 0, {}, {}}; }

// It made room for what is more urgent.
bool was_interrupted(const Status& status) { return status.error_number() == EINTR; }

CallDecision fail(const Status& status) {
  if (was_interrupted(status)) return again();
  return refuse(ENOMEM, status.text());
}

bool is_page_range(std::uint64_t start, std::uint64_t bytes) {
  return start % kPageBytes == 0 && bytes != 0 && bytes <= kUserEnd && start <= kUserEnd - bytes;
}

bool meets_annex(std::uint64_t start, std::uint64_t bytes) {
  return start < kAnnexEnd && start + bytes > kAnnexCode;
}

bool meets_memory(std::uint64_t start, std::uint64_t bytes) {
  return start < kMemoryEnd && start + bytes > kMemoryStart;
}

bool meet(std::uint64_t start, std::uint64_t bytes, std::uint64_t other, std::uint64_t others) {
  return start < other + others && other < start + bytes;
}

Origin origin_of(const Descriptor& file, std::uint64_t offset, std::uint64_t start,
                 std::uint64_t bytes) {
  struct stat facts{};
  ::fstat(file.get(), &facts);
  return {start, bytes, true, offset, facts.st_ino, name_of_descriptor(file.get())};
}

// With the rights of `thread`: what its name leads to now may be anything.
Result<std::shared_ptr<const Descriptor>> open_again(pid_t thread, const Origin& origin) {
  const Result<ProgramRights> rights = ProgramRights::take(thread);
  if (!rights.ok()) return rights.status();
  auto file = std::make_shared<Descriptor>(
      ::open(origin.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  if (!file->valid() || ::fstat(file->get(), &facts) != 0 || facts.st_ino != origin.inode)
    return Status::failure(ENOENT,
                           "the mapped file " + origin.name + " is not there under its name");
  return std::shared_ptr<const Descriptor>(std::move(file));
}

// The file that the program has mapped there: the mapped one itself, which takes capabilities, or
// by its name with the program's rights.  Invalid where neither can be had.
Descriptor open_mapped_file(pid_t thread, const MemoryArea& line) {
  Descriptor mapped(::open(link_to_mapped(thread, line).c_str(), O_RDONLY | O_CLOEXEC));
  if (mapped.valid()) return mapped;
  const Result<ProgramRights> rights = ProgramRights::take(thread);
  if (!rights.ok()) return {};
  Descriptor named(
      ::open(line.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!named.valid() || !is_mapped_as(named, line)) return {};
  return named;
}

// As far as the file has bytes for it.
std::uint64_t bytes_within(const Descriptor& file, std::uint64_t offset, std::uint64_t bytes) {
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return 0;
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  return size > offset ? std::min(bytes, round_up_to_page(size - offset)) : 0;
}

// Of a thread that lives: the first one may have ended before it.  Before Linux 6.9 of the process,
// for as long as its first thread lives.
Descriptor open_handle(pid_t thread) {
  constexpr unsigned kOfThread = O_EXCL;  // PIDFD_THREAD
  Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, thread, kOfThread)));
  if (handle.valid() || errno != EINVAL) return handle;
  const std::uint64_t leader = number_of(field_of(read_proc(thread, "status"), "Tgid"));
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0)));
}

// What the program itself has open under the number; -errno.
int open_file_of(pid_t thread, int number) {
  const Descriptor handle = open_handle(thread);
  if (!handle.valid()) return -errno;
  const auto file = static_cast<int>(::syscall(SYS_pidfd_getfd, handle.get(), number, 0));
  return file < 0 ? -errno : file;
}

// A file whose bytes are to be laid into the memory file, opened to be read.  The kernel, which
// does not map it, is asked whether the program may: by its descriptor (O_PATH, O_WRONLY), a file
// of that kind, as code from where it lies.  -errno.
int open_to_copy(const Descriptor& file, std::uint64_t offset, int protection) {
  void* const mapped = ::mmap(nullptr, kPageBytes, PROT_READ | (protection & PROT_EXEC),
                              MAP_PRIVATE, file.get(), static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return -errno;
  ::munmap(mapped, kPageBytes);
  // Anew, for what it does to the program's own open file (O_DIRECT).
  const int opened =
      ::open(link_to_descriptor(file.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return opened < 0 ? -errno : opened;
}

bool can_be_read(const Descriptor& file, std::uint64_t offset) {
  char byte = 0;
  return ::pread(file.get(), &byte, 1, static_cast<off_t>(offset)) >= 0;
}

// Whose mappings are memory of no name.  A file's server is not asked.
bool is_zero_device(pid_t thread, int descriptor) {
  FileProof proof;
  return prove_known_file(AT_FDCWD, fmt::format("/proc/{}/fd/{}", thread, descriptor), proof) &&
         proof.type == S_IFCHR && proof.device_number == makedev(1, 5);
}

bool is_read_only(pid_t thread, int descriptor) {
  const std::string facts = read_proc(thread, fmt::format("fdinfo/{}", descriptor));
  const std::string_view flags = field_of(facts, "flags");
  return flags.empty() || (number_of(flags, 8) & O_ACCMODE) == O_RDONLY;
}

// How many mappings the kernel lets a process have: vm.max_map_count.
std::uint64_t mappings_max() {
  const Descriptor file(::open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC));
  char text[32]{};
  if (!file.valid() || ::read(file.get(), text, sizeof(text) - 1) <= 0) return UINT64_MAX;
  return std::strtoull(text, nullptr, 10);
}
// To move memory must not fail half way: so many are to be free, as in the kernel's own mremap.
constexpr std::uint64_t kMappingsToMove = 5;

std::uint64_t random_page(std::uint64_t start, std::uint64_t spread) {
  std::uint64_t drawn = 0;
  PAWL_ASSERT(::getrandom(&drawn, sizeof drawn, 0) == ssize_t{sizeof drawn});
  return start + drawn % (spread / kPageBytes) * kPageBytes;
}

bool is_in_memory_file(const MemoryArea& line, const KeptMemory& memory) {
  return line.is_shared && line.inode == memory.inode() && line.offset == line.start;
}

}  // namespace

void MemoryCalls::begin() {
  const auto part = [](std::uint64_t start, std::uint64_t end, std::uint64_t spread) {
    return AddressSpace(start, end, random_page(start, spread));
  };
  files_ = part(kFilesStart, kFilesEnd, kSpread);
  nameless_ = part(kMemoryStart, kMemoryEnd, kSpread);
  low_ = part(kLowStart, kLowEnd, kLowSpread);
  break_ = random_page(kBreakStart, kBreakSpread);
  origins_.clear();
  busy_.clear();
}

bool MemoryCalls::is_busy(std::uint64_t start, std::uint64_t bytes) const {
  return std::any_of(busy_.begin(), busy_.end(), [&](const Range& range) {
    return meet(start, bytes, range.start, range.bytes);
  });
}

void MemoryCalls::end_work(std::uint64_t start, std::uint64_t bytes) {
  const auto found = std::find_if(busy_.begin(), busy_.end(), [&](const Range& range) {
    return range.start == start && range.bytes == bytes;
  });
  if (found != busy_.end()) busy_.erase(found);
}

void MemoryCalls::forget(std::uint64_t start, std::uint64_t bytes) {
  origins_.erase(start, bytes);
  // Where bytes are left behind, nothing new is mapped by our choice.
  if (memory_.punch(start, bytes).ok()) mark_free(start, bytes);
}

void MemoryCalls::give_back(const RunningCall& running, bool with_place) {
  if (with_place) {
    forget(running.place, running.bytes);
  } else if (running.has_room) {
    (void)memory_.give_back_room(running.place, running.bytes);
  }
}

void MemoryCalls::adopt_mapping(std::uint64_t start, std::uint64_t bytes) {
  mark_used(start, bytes);
}

bool MemoryCalls::reserve(std::uint64_t start, std::uint64_t bytes) {
  for (AddressSpace* space : {&files_, &nameless_, &low_}) {
    if (space->contains(start)) return space->take_exactly(start, bytes);
  }
  return true;
}

void MemoryCalls::mark_used(std::uint64_t start, std::uint64_t bytes) {
  files_.mark_used(start, bytes);
  nameless_.mark_used(start, bytes);
  low_.mark_used(start, bytes);
}

void MemoryCalls::mark_free(std::uint64_t start, std::uint64_t bytes) {
  files_.mark_free(start, bytes);
  nameless_.mark_free(start, bytes);
  low_.mark_free(start, bytes);
}

CallDecision MemoryCalls::enter(pid_t thread, const tracing::Registers& call, RunningCall& running,
                                CallList& list) {
  const bool is_half_done = running.is_half_done;
  running = {};
  running.original = call;
  switch (call.orig_rax) {
    case SYS_mmap:
      return map(thread, call, running);
    case SYS_munmap:
      return unmap(call, running);
    case SYS_mremap:
      return resize(thread, call, running, list);
    case SYS_brk:
      return set_break(call, running);
    case SYS_mprotect:
    case SYS_pkey_mprotect:  // of key 0, as none is given out
      return protect(thread, call, running, list);
    case SYS_madvise:
      return static_cast<int>(call.rdx) == MADV_REMOVE ? remove(call) : drop(thread, call);
    case SYS_clone3:
      return answer(static_cast<std::uint64_t>(-ENOSYS));
    // Of the memory file's descriptor, as if it were none.
    case SYS_close:
    case SYS_dup:
    case SYS_fcntl:
    case SYS_ioctl:
    case SYS_ftruncate:
    case SYS_fallocate:
      return answer(static_cast<std::uint64_t>(-EBADF));
    case SYS_dup2:
    case SYS_dup3:
      if (static_cast<int>(call.rdi) == descriptor_)
        return answer(static_cast<std::uint64_t>(-EBADF));
      return refuse(EBADF, fmt::format("descriptor {} is Pawl's own", descriptor_));
    case SYS_close_range:
      return close_range(thread, call, running, is_half_done);
    default:
      return {};
  }
}

// Around the memory file's descriptor: those below it, and then those above.  Both by the thread
// itself, which is not waited for: to close one may take as long as a server or a peer likes.
CallDecision MemoryCalls::close_range(pid_t thread, const tracing::Registers& call,
                                      RunningCall& running, bool is_half_done) const {
  constexpr std::uint32_t kKnownFlags = CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC;
  // The kernel takes no more of each than its lower half.
  const auto first = static_cast<std::uint32_t>(call.rdi);
  const auto last = static_cast<std::uint32_t>(call.rsi);
  const auto kept = static_cast<std::uint32_t>(descriptor_);
  if (last < first || (static_cast<std::uint32_t>(call.rdx) & ~kKnownFlags) != 0) return {};
  // A thread that is alone has them for itself already.
  if ((call.rdx & CLOSE_RANGE_UNSHARE) != 0 &&
      number_of(field_of(read_proc(thread, "status"), "Threads")) != 1)
    return refuse(EINVAL, "close_range(CLOSE_RANGE_UNSHARE): threads are kept that share files");
  if (first > kept || last < kept) return {};
  if (first == kept && last == kept) return answer(0);
  CallDecision decision{Kind::change, 0, call, {}};
  if (first == kept || (is_half_done && last > kept)) {
    decision.registers.rdi = kept + 1;
  } else {
    decision.registers.rsi = kept - 1;
    if (last > kept) running.kind = RunningCall::Kind::close_below;
  }
  return decision;
}

std::uint64_t MemoryCalls::choose(const tracing::Registers& call, std::uint64_t bytes,
                                  bool is_memory) {
  if ((call.r10 & MAP_32BIT) != 0) return low_.take(bytes).value_or(0);
  AddressSpace& space = is_memory ? nameless_ : files_;
  if (is_page_range(call.rdi, bytes) && space.take_exactly(call.rdi, bytes)) return call.rdi;
  return space.take(bytes).value_or(0);
}

CallDecision MemoryCalls::map(pid_t thread, const tracing::Registers& call, RunningCall& running) {
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  const std::uint64_t flags = call.r10;
  const bool is_fixed = (flags & kFixedBits) != 0;
  if (bytes == 0 || bytes > kUserEnd || (is_fixed && !is_page_range(call.rdi, bytes))) return {};
  const bool has_file =
      (flags & MAP_ANONYMOUS) == 0 && !is_zero_device(thread, static_cast<int>(call.r8));
  if (has_file && call.r9 % kPageBytes != 0) return {};
  // What the kernel does not take it says itself.
  if ((flags & kTypeBits) == 0 || (!has_file && (flags & kTypeBits) == MAP_SHARED_VALIDATE))
    return {};
  const bool is_private = (flags & kTypeBits) == MAP_PRIVATE;
  const bool is_written = (call.rdx & PROT_WRITE) != 0;
  if ((flags & MAP_HUGETLB) != 0)
    return refuse(ENOMEM, "mmap(MAP_HUGETLB): huge pages of that kind are not in the memory file");
  if ((flags & MAP_GROWSDOWN) != 0)
    return refuse(EOPNOTSUPP, "mmap(MAP_GROWSDOWN): map all of the stack at once");
  if (has_file && !is_private && is_written)
    return refuse(EACCES,
                  "mmap of a file, shared and writable: the file's own bytes would not be kept "
                  "with the program's; write(2) them, or map the file privately");
  if (is_fixed && meets_annex(call.rdi, bytes))
    return refuse(ENOMEM, "mmap(MAP_FIXED): the place is Pawl's own");
  // There it could be made writable without our being asked.
  if (has_file && !is_private && is_fixed && meets_memory(call.rdi, bytes) &&
      !is_read_only(thread, static_cast<int>(call.r8)))
    return refuse(
        EACCES,
        "mmap of a file, shared, to where memory is, of a descriptor that may write; open "
        "it O_RDONLY");
  if (has_file && static_cast<int>(call.r8) == descriptor_)
    return answer(static_cast<std::uint64_t>(-EBADF));
  if (is_fixed && is_busy(call.rdi, bytes)) return again();

  // What lies between is made writable without our being asked.
  const bool may_be_written = is_written || (is_fixed && meets_memory(call.rdi, bytes));
  const bool is_memory = !has_file || (is_private && may_be_written);
  if (origins_.is_full() && is_memory && (has_file || !is_private))
    return refuse(ENOMEM, "mmap: there are too many mappings of files");
  auto file = std::make_shared<Descriptor>();
  // One that the kernel maps itself is not touched: who closes a file asks its server (FUSE).
  if (has_file && is_memory) {
    const int number = open_file_of(thread, static_cast<int>(call.r8));
    if (number == -EBADF) return answer(static_cast<std::uint64_t>(-EBADF));
    if (number < 0)
      return refuse(EACCES, FailedCall{-number, "cannot read a file that is mapped"}.text());
    const Descriptor its_own(number);
    const int opened = open_to_copy(its_own, call.r9, static_cast<int>(call.rdx));
    if (opened < 0) return answer(static_cast<std::uint64_t>(opened));
    file->reset(opened);
    if (!can_be_read(*file, call.r9))
      return refuse(EACCES, FailedCall{errno, "cannot read a file that is mapped"}.text());
  }
  if (is_memory && has_file && !memory_.must_go_on().ok()) return again();
  running.place = is_fixed ? call.rdi : choose(call, bytes, is_memory);
  running.bytes = bytes;
  running.was_chosen = !is_fixed;
  running.is_memory = is_memory;
  running.kind = RunningCall::Kind::map;
  if (running.place == 0) return answer(static_cast<std::uint64_t>(-ENOMEM));
  CallDecision decision{Kind::change, 0, call, {}};
  decision.registers.rdi = running.place;
  if (!is_fixed) decision.registers.r10 |= MAP_FIXED_NOREPLACE;
  decision.registers.r10 &= ~static_cast<std::uint64_t>(MAP_32BIT);
  if (is_memory) {
    if (has_file) {
      // Room while nothing is given up for it; its bytes when it is mapped, and not before: a call
      // that fails leaves what was there.  One that replaces nothing gives nothing up, and where it
      // fails the program may be storing to what is there.
      running.file = std::move(file);
      running.has_room = (flags & MAP_FIXED_NOREPLACE) == 0;
      Status done;
      if (running.has_room)
        done = memory_.reserve(running.place, bytes_within(*running.file, call.r9, bytes));
      if (!done.ok()) {
        give_back(running, running.was_chosen);
        return fail(done);
      }
      running.origins.push_back(origin_of(*running.file, call.r9, running.place, bytes));
    } else if ((flags & MAP_SHARED) != 0) {
      running.origins.push_back({running.place, bytes, false, 0, 0, {}});
    }
    decision.registers.r10 &= ~(kTypeBits | MAP_ANONYMOUS);
    decision.registers.r10 |= MAP_SHARED;
    decision.registers.r8 = static_cast<std::uint64_t>(descriptor_);
    decision.registers.r9 = running.place;
  }
  begin_work(running.place, bytes);
  return decision;
}

// Lays there what is mapped of files, and notes where it came from.
Status MemoryCalls::fill(const RunningCall& running) const {
  for (const Origin& origin : running.origins) {
    if (origin.is_file)
      PAWL_TRY(memory_.copy_file(running.file->get(), origin.offset, origin.start, origin.bytes));
  }
  return {};
}

CallDecision MemoryCalls::finish_map(RunningCall& running, std::uint64_t result, CallList& list) {
  if (result >= kErrorsFrom) {
    // What is there already is not ours to take away.
    give_back(running, running.was_chosen && result != static_cast<std::uint64_t>(-EEXIST));
    return answer(result);
  }
  mark_used(running.place, running.bytes);
  origins_.erase(running.place, running.bytes);
  // What was there before is gone; the kernel has agreed.
  const bool takes_place = (running.original.r10 & MAP_FIXED) != 0 && running.file == nullptr;
  Status done = takes_place ? memory_.punch(running.place, running.bytes) : Status();
  if (done.ok()) done = fill(running);
  // Over what was there already it is made again as it is: nobody else is to be given the place.
  const bool is_replacing = (running.original.r10 & MAP_FIXED_NOREPLACE) == 0;
  if (was_interrupted(done) && !running.was_chosen && is_replacing) return again();
  if (!done.ok()) return undo(running, list, done);
  for (const Origin& origin : running.origins) origins_.set(origin);
  return answer(result);
}

CallDecision MemoryCalls::undo(RunningCall& running, CallList& list, const Status& why) {
  running.kind = RunningCall::Kind::undo;
  running.answer = static_cast<std::uint64_t>(-ENOMEM);
  running.is_made_again = was_interrupted(why);
  list.clear();
  list.add(SYS_munmap, {running.place, running.bytes});
  return {Kind::list, 0, {}, why.ok() || running.is_made_again ? std::string() : why.text()};
}

CallDecision MemoryCalls::unmap(const tracing::Registers& call, RunningCall& running) {
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  if (!is_page_range(call.rdi, bytes)) return {};
  if (meets_annex(call.rdi, bytes)) return refuse(EINVAL, "munmap: the place is Pawl's own");
  if (is_busy(call.rdi, bytes)) return again();
  // The bytes go behind the call: the kernel may refuse it (vm.max_map_count).
  running.kind = RunningCall::Kind::unmap;
  running.place = call.rdi;
  running.bytes = bytes;
  begin_work(running.place, bytes);
  return {Kind::change, 0, call, {}};
}

CallDecision MemoryCalls::set_break(const tracing::Registers& call, RunningCall& running) {
  const std::uint64_t wanted = call.rdi;
  if (wanted < kBreakStart || wanted > kBreakEnd) return answer(break_);
  const std::uint64_t mapped_to = round_up_to_page(break_);
  const std::uint64_t map_to = round_up_to_page(wanted);
  if (is_busy(kBreakStart, kBreakEnd - kBreakStart)) return again();
  if (map_to == mapped_to) {
    break_ = wanted;
    return answer(break_);
  }
  CallDecision decision{Kind::change, 0, call, {}};
  running.place = wanted;
  running.bytes = break_;  // to go back to
  if (map_to > mapped_to) {
    running.kind = RunningCall::Kind::grow_break;
    decision.registers.orig_rax = SYS_mmap;
    decision.registers.rdi = mapped_to;
    decision.registers.rsi = map_to - mapped_to;
    decision.registers.rdx = kReadWrite;
    decision.registers.r10 = MAP_SHARED | MAP_FIXED;
    decision.registers.r8 = static_cast<std::uint64_t>(descriptor_);
    decision.registers.r9 = mapped_to;
    break_ = wanted;
    begin_work(kBreakStart, kBreakEnd - kBreakStart);
    return decision;
  }
  running.kind = RunningCall::Kind::shrink_break;
  decision.registers.orig_rax = SYS_munmap;
  decision.registers.rdi = map_to;
  decision.registers.rsi = mapped_to - map_to;
  break_ = wanted;
  begin_work(kBreakStart, kBreakEnd - kBreakStart);
  return decision;
}

CallDecision MemoryCalls::resize(pid_t thread, const tracing::Registers& call, RunningCall& running,
                                 CallList& list) {
  const std::uint64_t from = round_up_to_page(call.rsi);
  const std::uint64_t to = round_up_to_page(call.rdx);
  if (!is_page_range(call.rdi, from) || to == 0 || to > kUserEnd) {
    if (from == 0) return refuse(EINVAL, "mremap of nothing: no second mapping is made of memory");
    return {};
  }
  if ((call.r10 & ~static_cast<std::uint64_t>(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0)
    return refuse(EINVAL, "mremap(MREMAP_DONTUNMAP): memory is moved whole");
  if (meets_annex(call.rdi, std::max(from, to)))
    return refuse(EINVAL, "mremap: the place is Pawl's own");
  if (is_busy(call.rdi, std::max(from, to))) return again();
  if ((call.r10 & MREMAP_FIXED) != 0) return move(thread, call, call.r8, running, list);
  if (to == from) return {};
  CallDecision decision{Kind::change, 0, call, {}};
  if (to < from) {
    running.kind = RunningCall::Kind::unmap;
    running.place = call.rdi + to;
    running.bytes = from - to;
    begin_work(running.place, running.bytes);
    return decision;
  }
  // Where it is, if it can be: then it stays where it is in the file too.  Not into a place that
  // another thread was given and has not mapped yet.
  running.place = call.rdi + from;
  running.bytes = to - from;
  if (Status noted = note_growth(thread, call.rdi + from, running.place, running.bytes, running);
      !noted.ok())
    return refuse(EINVAL, "mremap: " + noted.text());
  if (!reserve(running.place, running.bytes)) {
    if ((call.r10 & MREMAP_MAYMOVE) != 0) return move(thread, call, 0, running, list);
    return answer(static_cast<std::uint64_t>(-ENOMEM));
  }
  running.kind = RunningCall::Kind::grow;
  begin_work(running.place, running.bytes);
  decision.registers.r10 = 0;
  return decision;
}

Status MemoryCalls::note_growth(pid_t thread, std::uint64_t end, std::uint64_t grown_to,
                                std::uint64_t bytes, RunningCall& running) const {
  running.origins.clear();
  const std::vector<Origin> last = origins_.within(end - kPageBytes, kPageBytes);
  if (last.empty()) return {};
  Origin more = last.back();
  more.offset = more.offset_of(end);
  more.start = grown_to;
  more.bytes = bytes;
  if (more.is_file) {
    Result<std::shared_ptr<const Descriptor>> file = open_again(thread, more);
    if (!file.ok()) return file.status();
    running.file = file.value();
  }
  running.origins.push_back(more);
  return {};
}

CallDecision MemoryCalls::finish_grow(pid_t thread, RunningCall& running, std::uint64_t result,
                                      CallList& list) {
  if (result >= kErrorsFrom) {
    mark_free(running.place, running.bytes);  // nothing was laid there, but others may have
    if ((running.original.r10 & MREMAP_MAYMOVE) != 0)
      return move(thread, running.original, 0, running, list);
    return answer(result);
  }
  mark_used(running.place, running.bytes);
  if (Status done = fill(running); !done.ok()) return undo(running, list, done);
  for (const Origin& origin : running.origins) origins_.set(origin);
  return answer(result);
}

CallDecision MemoryCalls::move(pid_t thread, const tracing::Registers& call,
                               std::uint64_t fixed_place, RunningCall& running, CallList& list) {
  const std::uint64_t from = round_up_to_page(call.rsi);
  const std::uint64_t to = round_up_to_page(call.rdx);
  if (!memory_.must_go_on().ok()) return again();
  const std::vector<MemoryArea> lines = read_maps(thread);
  const auto line = std::find_if(lines.begin(), lines.end(), [&](const MemoryArea& other) {
    return call.rdi >= other.start && call.rdi < other.end;
  });
  if (line == lines.end() || call.rdi + from > line->end)
    return answer(static_cast<std::uint64_t>(-EFAULT));
  if (lines.size() + kMappingsToMove >= mappings_max())
    return answer(static_cast<std::uint64_t>(-ENOMEM));
  running.is_memory = is_in_memory_file(*line, memory_);
  running.was_chosen = fixed_place == 0;
  running.place = fixed_place;
  running.bytes = to;
  running.origins.clear();
  if (to > from) {
    if (Status noted = note_growth(thread, call.rdi + from, 0, to - from, running); !noted.ok())
      return refuse(EINVAL, "mremap: " + noted.text());
  }
  if (running.was_chosen) {
    running.place = (running.is_memory ? nameless_ : files_).take(to).value_or(0);
    if (running.place == 0) return answer(static_cast<std::uint64_t>(-ENOMEM));
  } else {
    if (!is_page_range(fixed_place, to) || meet(fixed_place, to, call.rdi, from))
      return answer(static_cast<std::uint64_t>(-EINVAL));
    if (meets_annex(fixed_place, to)) return refuse(ENOMEM, "mremap: the place is Pawl's own");
    if (!running.is_memory && meets_memory(fixed_place, to))
      return refuse(EINVAL, "mremap of a file's pages to where memory is: map them there");
    if (is_busy(fixed_place, to)) return again();
  }
  for (Origin& origin : running.origins) origin.start = running.place + from;
  running.kind = RunningCall::Kind::move;
  list.clear();
  if (running.is_memory) {
    list.add(SYS_mmap,
             {running.place, to, static_cast<std::uint64_t>(line->protection),
              MAP_SHARED | MAP_FIXED, static_cast<std::uint64_t>(descriptor_), running.place});
  } else {
    list.add(SYS_mremap, {call.rdi, from, to, MREMAP_MAYMOVE | MREMAP_FIXED, running.place});
  }
  return {Kind::list, 0, {}, {}};
}

CallDecision MemoryCalls::finish_move(RunningCall& running, CallList& list) {
  const tracing::Registers& call = running.original;
  const std::uint64_t from = round_up_to_page(call.rsi);
  if (list.call(0).failed()) {
    if (running.was_chosen) forget(running.place, running.bytes);
    return answer(list.call(0).result);
  }
  mark_used(running.place, running.bytes);
  origins_.erase(running.place, running.bytes);
  Status done = running.was_chosen ? Status() : memory_.punch(running.place, running.bytes);
  if (!running.is_memory) {
    mark_free(call.rdi, from);
    return answer(running.place);
  }
  if (done.ok()) done = memory_.copy(call.rdi, running.place, std::min(from, running.bytes));
  if (done.ok()) done = fill(running);
  if (was_interrupted(done) && !running.was_chosen) return again();
  if (!done.ok()) return undo(running, list, done);
  running.kind = RunningCall::Kind::leave;
  list.clear();
  list.add(SYS_munmap, {call.rdi, from});
  return {Kind::list, 0, {}, {}};
}

CallDecision MemoryCalls::finish_leave(RunningCall& running, CallList& list) {
  const tracing::Registers& call = running.original;
  const std::uint64_t from = round_up_to_page(call.rsi);
  if (list.call(0).failed()) return undo(running, list, {});
  origins_.move(call.rdi, running.place, std::min(from, running.bytes));
  for (const Origin& origin : running.origins) origins_.set(origin);
  forget(call.rdi, from);
  return answer(running.place);
}

// PROT_GROWSDOWN: from the start of the first thread's stack on, as the program began with it: what
// is mapped below it lies in the same line.  The kernel knows no stack where the memory file is
// mapped, which does not grow by itself.
CallDecision MemoryCalls::protect_stack(pid_t thread, const tracing::Registers& call) const {
  constexpr std::size_t kStackField = 25;  // where it began, of /proc/PID/stat
  // Where the environment ends, in the highest page but for long names of programs.
  constexpr std::size_t kEndField = 48;
  const std::vector<std::uint64_t> facts = stat_fields(thread);
  const std::uint64_t began = facts.size() > kStackField ? facts[kStackField] : 0;
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  if (!is_page_range(call.rdi, bytes)) return {};
  if (is_busy(call.rdi, bytes)) return again();
  for (const MemoryArea& line : read_maps(thread)) {
    const bool has_stack = line.start <= began && began < line.end;
    const bool has_range = line.start <= call.rdi && call.rdi + bytes <= line.end;
    if (!has_stack || !has_range || !is_in_memory_file(line, memory_)) continue;
    const std::uint64_t end =
        facts.size() > kEndField ? round_up_to_page(facts[kEndField] + 1) : line.end;
    const std::uint64_t lowest = std::max<std::uint64_t>(line.start, end - stack_bytes(thread));
    const std::uint64_t start = std::min<std::uint64_t>(lowest, call.rdi);
    CallDecision decision{Kind::change, 0, call, {}};
    decision.registers.rdi = start;
    decision.registers.rsi = call.rdi + bytes - start;
    decision.registers.rdx &= ~static_cast<std::uint64_t>(PROT_GROWSDOWN);
    return decision;
  }
  return {};  // which the kernel refuses
}

CallDecision MemoryCalls::protect(pid_t thread, const tracing::Registers& call,
                                  RunningCall& running, CallList& list) {
  if ((call.rdx & PROT_GROWSDOWN) != 0) return protect_stack(thread, call);
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  if (!is_page_range(call.rdi, bytes)) return {};
  if (meets_annex(call.rdi, bytes)) return refuse(EACCES, "mprotect: the place is Pawl's own");
  if (is_busy(call.rdi, bytes)) return again();
  list.clear();
  std::uint64_t reached = call.rdi;
  for (const MemoryArea& line : read_maps(thread)) {
    if (line.end <= reached) continue;
    if (line.start > reached) break;  // the kernel goes no further either, and says so
    reached = line.end;
    const auto start = std::max<std::uint64_t>(line.start, call.rdi);
    const auto end = std::min<std::uint64_t>(line.end, call.rdi + bytes);
    if (start >= end || is_in_memory_file(line, memory_)) continue;
    if (line.is_shared || line.is_kernels()) {
      give_copies_back(running);
      return refuse(EACCES, fmt::format("mprotect: {} cannot be made writable", line.name));
    }
    // A file's private pages that were only read so far: from here on they are memory.
    const Descriptor file = open_mapped_file(thread, line);
    if (!file.valid() || !list.has_room() || origins_.is_full()) {
      give_copies_back(running);
      return refuse(EACCES, "mprotect: cannot read " + line.name + " to make it writable");
    }
    const std::uint64_t offset = line.offset + (start - line.start);
    running.origins.push_back(origin_of(file, offset, start, end - start));
    if (Status done = memory_.copy_file(file.get(), offset, start, end - start); !done.ok()) {
      give_copies_back(running);
      return fail(done);
    }
    list.add(SYS_mmap, {start, end - start, call.rdx, MAP_SHARED | MAP_FIXED,
                        static_cast<std::uint64_t>(descriptor_), start});
  }
  if (list.count() == 0) return {};
  running.kind = RunningCall::Kind::make_memory;
  return {Kind::list, 0, {}, {}};
}

// Where they lie the files themselves are still mapped.
void MemoryCalls::give_copies_back(const RunningCall& running) const {
  for (const Origin& copy : running.origins) (void)memory_.punch(copy.start, copy.bytes);
}

// What a program says it does without shows zeros again, or its file's bytes.
CallDecision MemoryCalls::drop(pid_t thread, const tracing::Registers& call) {
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  if (!is_page_range(call.rdi, bytes)) return {};
  if (meets_annex(call.rdi, bytes)) return refuse(EINVAL, "madvise: the place is Pawl's own");
  if (is_busy(call.rdi, bytes)) return again();
  const std::vector<Origin> origins = origins_.within(call.rdi, bytes);
  if (static_cast<int>(call.rdx) == MADV_FREE && !origins.empty())
    return answer(static_cast<std::uint64_t>(-EINVAL));  // as the kernel has it
  std::vector<std::shared_ptr<const Descriptor>> files;
  for (const Origin& origin : origins) {
    files.emplace_back();
    if (!origin.is_file) continue;
    Result<std::shared_ptr<const Descriptor>> file = open_again(thread, origin);
    if (!file.ok()) return refuse(EINVAL, "madvise(MADV_DONTNEED): " + file.status().text());
    files.back() = file.value();
  }
  std::uint64_t at = call.rdi;
  Status done;
  for (std::size_t i = 0; i < origins.size() && done.ok(); ++i) {
    const Origin& origin = origins[i];
    if (origin.start > at) done = memory_.punch(at, origin.start - at);
    if (done.ok() && origin.is_file)
      done = memory_.copy_file(files[i]->get(), origin.offset, origin.start, origin.bytes);
    at = origin.end();
  }
  const std::uint64_t end = call.rdi + bytes;
  if (done.ok() && end > at) done = memory_.punch(at, end - at);
  return done.ok() ? answer(0) : fail(done);
}

// The kernel does it to shared memory only; here all memory is shared.
CallDecision MemoryCalls::remove(const tracing::Registers& call) {
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  if (!is_page_range(call.rdi, bytes)) return {};
  std::uint64_t shared_bytes = 0;
  for (const Origin& origin : origins_.within(call.rdi, bytes))
    shared_bytes += origin.is_file ? 0 : origin.bytes;
  if (shared_bytes == bytes) return {};
  return answer(static_cast<std::uint64_t>(-EINVAL));
}

CallDecision MemoryCalls::finish(pid_t thread, RunningCall& running, std::uint64_t result,
                                 CallList& list) {
  const bool failed = result >= kErrorsFrom;
  switch (running.kind) {
    case RunningCall::Kind::map:
      end_work(running.place, running.bytes);
      return finish_map(running, result, list);
    case RunningCall::Kind::unmap:
      end_work(running.place, running.bytes);
      if (!failed) forget(running.place, running.bytes);
      break;
    case RunningCall::Kind::grow_break:
    case RunningCall::Kind::shrink_break: {
      end_work(kBreakStart, kBreakEnd - kBreakStart);
      const std::uint64_t before = running.bytes;
      if (failed) break_ = before;
      const std::uint64_t from = round_up_to_page(break_);
      const std::uint64_t to = round_up_to_page(before);
      if (to > from) forget(from, to - from);
      return answer(break_);
    }
    case RunningCall::Kind::grow:
      end_work(running.place, running.bytes);
      return finish_grow(thread, running, result, list);
    case RunningCall::Kind::close_below:
      if (failed) break;
      running.is_half_done = true;
      return again();
    default:
      break;
  }
  return answer(result);
}

CallDecision MemoryCalls::finish_list(RunningCall& running, CallList& list) {
  switch (running.kind) {
    case RunningCall::Kind::move:
      return finish_move(running, list);
    case RunningCall::Kind::leave:
      return finish_leave(running, list);
    case RunningCall::Kind::undo:
      if (list.call(0).failed()) return answer(running.answer);
      forget(running.place, running.bytes);
      return running.is_made_again ? again() : answer(running.answer);
    case RunningCall::Kind::make_memory: {
      // All are made: behind one that failed, others may have become memory.
      std::uint64_t refused = 0;
      for (std::size_t i = 0; i < list.count(); ++i) {
        const Origin& copy = running.origins[i];
        if (!list.call(i).failed()) {
          origins_.set(copy);
        } else {
          (void)memory_.punch(copy.start, copy.bytes);
          if (refused == 0) refused = list.call(i).result;
        }
      }
      if (refused != 0) return answer(refused);
      const tracing::Registers& call = running.original;
      running.kind = RunningCall::Kind::protect;
      list.clear();
      list.add(SYS_mprotect, {call.rdi, call.rsi, call.rdx});
      return {Kind::list, 0, {}, {}};
    }
    default:
      return answer(list.call(0).result);
  }
}

}  // namespace pawl::wsp
