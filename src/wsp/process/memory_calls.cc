#include "wsp/process/memory_calls.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "medium/descriptor.h"
#include "wsp/process/maps.h"

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

CallDecision fail(const Status& status) { return refuse(ENOMEM, status.text()); }

bool is_page_range(std::uint64_t start, std::uint64_t bytes) {
  return start % kPageBytes == 0 && bytes != 0 && bytes <= kUserEnd && start <= kUserEnd - bytes;
}

bool meets_annex(std::uint64_t start, std::uint64_t bytes) {
  return start < kAnnexEnd && start + bytes > kAnnexCode;
}

bool is_in_memory_file(const MapsLine& line, const KeptMemory& memory) {
  return line.is_shared && line.inode == memory.inode() && line.offset == line.start;
}

}  // namespace

void MemoryCalls::begin() {
  files_ = AddressSpace(kFilesStart, kFilesEnd);
  nameless_ = AddressSpace(kMemoryStart, kMemoryEnd);
  low_ = AddressSpace(kLowStart, kLowEnd);
  break_ = kBreakStart;
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
      return protect(thread, call, list);
    case SYS_madvise:
      return drop(call);
    case SYS_clone3:
      return answer(static_cast<std::uint64_t>(-ENOSYS));
    case SYS_close:
      return answer(static_cast<std::uint64_t>(-EBADF));
    case SYS_dup2:
    case SYS_dup3:
      return refuse(EBADF, fmt::format("descriptor {} is Pawl's own", descriptor_));
    case SYS_close_range:
      if (call.rdi <= static_cast<std::uint64_t>(descriptor_) &&
          (call.rsi & 0xffffffff) >= static_cast<std::uint64_t>(descriptor_))
        return answer(static_cast<std::uint64_t>(-ENOSYS));
      return {};
    default:
      return {};
  }
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
  const bool has_file = (flags & MAP_ANONYMOUS) == 0;
  if (has_file && call.r9 % kPageBytes != 0) return {};
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

  // What lies between is made writable without our being asked.
  const bool may_be_written =
      is_written || (is_fixed && call.rdi < kMemoryEnd && call.rdi + bytes > kMemoryStart);
  const bool is_memory = !has_file || (is_private && may_be_written);
  Descriptor file;
  if (has_file) {
    // Before anything is given up for it.
    file.reset(::open(fmt::format("/proc/{}/fd/{}", thread, static_cast<int>(call.r8)).c_str(),
                      O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const int why_no_file = file.valid() ? 0 : errno;
    if (why_no_file == ENOENT) return answer(static_cast<std::uint64_t>(-EBADF));
    if (is_memory && why_no_file != 0)
      return refuse(EACCES,
                    Status::from_errno(why_no_file, "cannot read a file that is mapped").text());
  }
  running.place = is_fixed ? call.rdi : choose(call, bytes, is_memory);
  running.bytes = bytes;
  running.was_chosen = !is_fixed;
  running.kind = RunningCall::Kind::map;
  if (running.place == 0) return answer(static_cast<std::uint64_t>(-ENOMEM));
  if ((flags & MAP_FIXED) != 0) {
    if (Status done = memory_.punch(running.place, bytes); !done.ok()) return fail(done);
  }
  CallDecision decision{Kind::change, 0, call, {}};
  decision.registers.rdi = running.place;
  if (!is_fixed) decision.registers.r10 |= MAP_FIXED_NOREPLACE;
  decision.registers.r10 &= ~static_cast<std::uint64_t>(MAP_32BIT);
  if (!is_memory) return decision;
  if (has_file) {
    Status copied = memory_.copy_file(file.get(), call.r9, running.place, bytes);
    if (!copied.ok()) {
      if (running.was_chosen) mark_free(running.place, bytes);
      return refuse(EACCES, copied.text());
    }
  }
  decision.registers.r10 &= ~(kTypeBits | MAP_ANONYMOUS);
  decision.registers.r10 |= MAP_SHARED;
  decision.registers.r8 = static_cast<std::uint64_t>(descriptor_);
  decision.registers.r9 = running.place;
  return decision;
}

CallDecision MemoryCalls::unmap(const tracing::Registers& call, RunningCall& running) {
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  if (!is_page_range(call.rdi, bytes)) return {};
  if (meets_annex(call.rdi, bytes)) return refuse(EINVAL, "munmap: the place is Pawl's own");
  // Before the call and not behind it, when another thread may have been given the place.
  if (Status done = memory_.punch(call.rdi, bytes); !done.ok()) return fail(done);
  running.kind = RunningCall::Kind::unmap;
  running.place = call.rdi;
  running.bytes = bytes;
  return {Kind::change, 0, call, {}};
}

CallDecision MemoryCalls::set_break(const tracing::Registers& call, RunningCall& running) {
  const std::uint64_t wanted = call.rdi;
  if (wanted < kBreakStart || wanted > kBreakEnd) return answer(break_);
  const std::uint64_t mapped_to = round_up_to_page(break_);
  const std::uint64_t map_to = round_up_to_page(wanted);
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
    // Two threads may ask at once: the second must find what the first was given.
    break_ = wanted;
    return decision;
  }
  running.kind = RunningCall::Kind::shrink_break;
  if (Status done = memory_.punch(map_to, mapped_to - map_to); !done.ok()) return answer(break_);
  decision.registers.orig_rax = SYS_munmap;
  decision.registers.rdi = map_to;
  decision.registers.rsi = mapped_to - map_to;
  break_ = wanted;
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
  if ((call.r10 & MREMAP_FIXED) != 0) return move(thread, call, call.r8, list);
  if (to == from) return {};
  running.place = call.rdi;
  running.bytes = from;
  CallDecision decision{Kind::change, 0, call, {}};
  if (to < from) {
    if (Status done = memory_.punch(call.rdi + to, from - to); !done.ok()) return fail(done);
    running.kind = RunningCall::Kind::unmap;
    running.place = call.rdi + to;
    running.bytes = from - to;
    return decision;
  }
  // Where it is, if it can be: then it stays where it is in the file too.  Not into a place that
  // another thread was given and has not mapped yet.
  if (!reserve(call.rdi + from, to - from)) {
    if ((call.r10 & MREMAP_MAYMOVE) != 0) return move(thread, call, 0, list);
    return answer(static_cast<std::uint64_t>(-ENOMEM));
  }
  running.kind = RunningCall::Kind::grow;
  decision.registers.r10 = 0;
  return decision;
}

CallDecision MemoryCalls::move(pid_t thread, const tracing::Registers& call,
                               std::uint64_t fixed_place, CallList& list) {
  const std::uint64_t from = round_up_to_page(call.rsi);
  const std::uint64_t to = round_up_to_page(call.rdx);
  const std::vector<MapsLine> lines = read_maps(thread);
  const auto line = std::find_if(lines.begin(), lines.end(), [&](const MapsLine& other) {
    return call.rdi >= other.start && call.rdi < other.end;
  });
  if (line == lines.end() || call.rdi + from > line->end)
    return answer(static_cast<std::uint64_t>(-EFAULT));
  const bool is_memory = is_in_memory_file(*line, memory_);
  std::uint64_t place = fixed_place;
  if (place == 0) {
    place = (is_memory ? nameless_ : files_).take(to).value_or(0);
    if (place == 0) return answer(static_cast<std::uint64_t>(-ENOMEM));
  } else {
    if (!is_page_range(place, to) || (place < call.rdi + from && place + to > call.rdi))
      return answer(static_cast<std::uint64_t>(-EINVAL));
    if (meets_annex(place, to)) return refuse(ENOMEM, "mremap: the place is Pawl's own");
    if (Status done = memory_.punch(place, to); !done.ok()) return fail(done);
    mark_used(place, to);
  }
  list.clear();
  if (is_memory) {
    if (Status done = memory_.copy(call.rdi, place, std::min(from, to)); !done.ok())
      return fail(done);
    list.add(SYS_mmap, {place, to, static_cast<std::uint64_t>(line->protection),
                        MAP_SHARED | MAP_FIXED, static_cast<std::uint64_t>(descriptor_), place});
    list.add(SYS_munmap, {call.rdi, from});
  } else {
    list.add(SYS_mremap, {call.rdi, from, to, MREMAP_MAYMOVE | MREMAP_FIXED, place});
  }
  return {Kind::list, place, {}, {}};
}

CallDecision MemoryCalls::protect(pid_t thread, const tracing::Registers& call, CallList& list) {
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  if (!is_page_range(call.rdi, bytes)) return {};
  list.clear();
  for (const MapsLine& line : read_maps(thread)) {
    const auto start = std::max<std::uint64_t>(line.start, call.rdi);
    const auto end = std::min<std::uint64_t>(line.end, call.rdi + bytes);
    if (start >= end || is_in_memory_file(line, memory_)) continue;
    if (line.is_shared || line.is_kernels())
      return refuse(EACCES, fmt::format("mprotect: {} cannot be made writable", line.name));
    // A file's private pages that were only read so far: from here on they are memory.
    const Descriptor file(
        ::open(fmt::format("/proc/{}/map_files/{:x}-{:x}", thread, line.start, line.end).c_str(),
               O_RDONLY | O_CLOEXEC));
    if (!file.valid() || !list.has_room())
      return refuse(EACCES, "mprotect: cannot read " + line.name + " to make it writable");
    if (Status done =
            memory_.copy_file(file.get(), line.offset + (start - line.start), start, end - start);
        !done.ok())
      return fail(done);
    list.add(SYS_mmap, {start, end - start, call.rdx, MAP_SHARED | MAP_FIXED,
                        static_cast<std::uint64_t>(descriptor_), start});
  }
  if (list.count() == 0) return {};
  list.add(SYS_mprotect, {call.rdi, call.rsi, call.rdx});
  return {Kind::list, 0, {}, {}};
}

CallDecision MemoryCalls::drop(const tracing::Registers& call) {
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  if (!is_page_range(call.rdi, bytes)) return {};
  // Of a mapping of a file, the file's bytes would have to come back.
  if (files_.contains(call.rdi)) return {};
  if (meets_annex(call.rdi, bytes)) return refuse(EINVAL, "madvise: the place is Pawl's own");
  if (Status done = memory_.punch(call.rdi, bytes); !done.ok()) return fail(done);
  return answer(0);
}

CallDecision MemoryCalls::finish(pid_t thread, const RunningCall& running, std::uint64_t result,
                                 CallList& list) {
  const bool failed = result >= kErrorsFrom;
  switch (running.kind) {
    case RunningCall::Kind::map:
      if (!failed) {
        mark_used(running.place, running.bytes);
      } else if (running.was_chosen) {
        mark_free(running.place, running.bytes);
      }
      break;
    case RunningCall::Kind::unmap:
      if (!failed) mark_free(running.place, running.bytes);
      break;
    case RunningCall::Kind::grow_break:
      if (failed) break_ = running.bytes;
      return answer(failed ? running.bytes : running.place);
    case RunningCall::Kind::shrink_break:
      return answer(running.place);
    case RunningCall::Kind::grow:
      if (!failed) break;
      mark_free(running.place + running.bytes,
                round_up_to_page(running.original.rdx) - running.bytes);
      if ((running.original.r10 & MREMAP_MAYMOVE) != 0)
        return move(thread, running.original, 0, list);
      break;
    case RunningCall::Kind::none:
      break;
  }
  return answer(result);
}

void MemoryCalls::finish_list(const RunningCall& running) {
  const tracing::Registers& call = running.original;
  if (call.orig_rax != SYS_mremap) return;
  const std::uint64_t bytes = round_up_to_page(call.rsi);
  // The copy is in use: what it was made of can go.
  if (memory_.punch(call.rdi, bytes).ok()) mark_free(call.rdi, bytes);
}

}  // namespace pawl::wsp
