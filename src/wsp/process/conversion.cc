#include "wsp/process/conversion.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "medium/descriptor.h"
#include "tracing/thread.h"
#include "wsp/process/bounded_child.h"
#include "wsp/process/layout.h"
#include "wsp/process/mapped_file.h"
#include "wsp/process/maps.h"
#include "wsp/process/mount.h"
#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kUserCode = 0x33;  // the code segment of 64-bit programs

Status lost(const char* what) {
  return Status::failure(ESRCH, std::string("the program ended while ") + what);
}

// Up to the end of the exec call itself.
bool finish_exec(pid_t thread) {
  int status = 0;
  tracing::go_to_call_end(thread);
  return wait_for_stop(thread, status, kCallsSecondsMax) == Ran::done &&
         WSTOPSIG(status) == tracing::kSystemCallStop;
}

std::uint64_t find_call_instruction(int program_memory, const MemoryArea& vdso) {
  std::vector<unsigned char> code(vdso.bytes());
  if (::pread(program_memory, code.data(), code.size(), static_cast<off_t>(vdso.start)) !=
      static_cast<ssize_t>(code.size()))
    return 0;
  constexpr unsigned char kSystemCall[] = {0x0f, 0x05};
  const auto found =
      std::search(code.begin(), code.end(), std::begin(kSystemCall), std::end(kSystemCall));
  return found == code.end() ? 0 : vdso.start + static_cast<std::uint64_t>(found - code.begin());
}

bool must_move(const MemoryArea& line) {
  if (line.is_kernels()) return false;
  return line.inode == 0 || (line.protection & PROT_WRITE) != 0;
}

// Pages of zeros stay holes.
Status copy_line(int program_memory, const MemoryArea& line, const KeptMemory& memory) {
  static constexpr std::byte kZeros[kPageBytes]{};
  std::byte page[kPageBytes];
  for (std::uint64_t at = line.start; at < line.end; at += kPageBytes) {
    if (::pread(program_memory, page, sizeof(page), static_cast<off_t>(at)) != sizeof(page))
      continue;  // behind the end of a file: nothing is there
    if (std::memcmp(page, kZeros, sizeof(page)) == 0) continue;
    PAWL_TRY(memory.write(at, page));
  }
  return {};
}

bool is_of_this_machine(pid_t thread, const MemoryArea& line) {
  const Descriptor mapped(::open(link_to_mapped(thread, line).c_str(), O_PATH | O_CLOEXEC));
  return mapped.valid() && answers_by_itself(mount_of(mapped.get()));
}

// Of a file that a server may have by a child: who reads such a page waits for that.
Status copy_file_line(pid_t thread, int program_memory, const MemoryArea& line,
                      const KeptMemory& memory) {
  if (is_of_this_machine(thread, line)) return copy_line(program_memory, line, memory);
  Status copied = try_in_child(std::chrono::seconds(kCallsSecondsMax),
                               [&] { return copy_line(program_memory, line, memory); },
                               {program_memory, memory.memory()});
  if (copied.error_number() != ETIMEDOUT) return copied;
  return copied.with_text("the file server of " + line.name + " does not answer");
}

// Whether it may do more than who executed it: its set-user-ID or set-group-ID bits or its
// capabilities count.  (Root itself gains nothing.)
bool has_gained_privileges(pid_t thread) {
  const std::string status = read_proc(thread, "status");
  const std::vector<std::uint64_t> users = numbers_of(field_of(status, "Uid"));
  const std::vector<std::uint64_t> groups = numbers_of(field_of(status, "Gid"));
  if (users.size() != 4 || groups.size() != 4) return true;
  if (users[0] == 0) return false;
  const std::uint64_t own = number_of(field_of(status, "CapAmb"), 16);
  return users[1] != users[0] || groups[1] != groups[0] ||
         (number_of(field_of(status, "CapPrm"), 16) & ~own) != 0;
}

// Whether its user may not look at it, which the owner of its files in /proc tells: its own file
// can be executed, and not be read.  (Root looks at everything.)
bool is_hidden(pid_t thread) {
  const std::vector<std::uint64_t> users = numbers_of(field_of(read_proc(thread, "status"), "Uid"));
  struct stat facts{};
  return users.size() != 4 || ::stat(fmt::format("/proc/{}/status", thread).c_str(), &facts) != 0 ||
         facts.st_uid != users[1];
}

Status check(const AnnexCall& call, const char* what) {
  if (!call.failed()) return {};
  return FailedCall{call.error_number(), what};
}

Status map_annex(pid_t thread, std::uint64_t instruction, std::uint64_t place, std::uint64_t bytes,
                 int protection) {
  AnnexCall call{
      SYS_mmap,
      {place, bytes, static_cast<std::uint64_t>(protection),
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, static_cast<std::uint64_t>(-1), 0}};
  int status = 0;
  if (make_one_call(thread, instruction, call, status) != Ran::done)
    return lost("its memory was moved");
  return check(call, "cannot map Pawl's own pages into the program");
}

}  // namespace

std::uint64_t stack_bytes(pid_t thread) {
  rlimit limit{};
  if (::prlimit(thread, RLIMIT_STACK, nullptr, &limit) != 0) return kStackBytesMax;
  return round_up_to_page(std::min<std::uint64_t>(limit.rlim_cur, kStackBytesMax));
}

Status move_into_memory(pid_t thread, KeptMemory& memory, int descriptor, CallList& list,
                        std::vector<Origin>& origins) {
  if (!finish_exec(thread)) return lost("it was executed");
  tracing::Registers registers{};
  if (!tracing::read_registers(thread, registers)) return lost("it was executed");
  if (registers.cs != kUserCode)
    return Status::failure(ENOEXEC, "it is a 32-bit program; only 64-bit ones are kept");
  if (has_gained_privileges(thread)) {
    return Status::failure(EACCES,
                           "it executed a program that gains privileges (set-user-ID, set-group-ID "
                           "or capabilities of the file), whose memory whoever has that of the "
                           "program could write; execute it outside of 'pawl wsp run'");
  }
  if (is_hidden(thread)) {
    return Status::failure(EACCES,
                           "it executed a program that its user may not read, whose memory whoever "
                           "has that of the program could read; let that file be read, or execute "
                           "it outside of 'pawl wsp run'");
  }
  PAWL_TRY(memory.clear());
  const std::vector<MemoryArea> lines = read_maps(thread);
  const auto vdso = std::find_if(lines.begin(), lines.end(),
                                 [](const MemoryArea& line) { return line.name == "[vdso]"; });
  PAWL_TRY(list.open_program(thread));
  const int program_memory = list.program_memory();
  if (vdso == lines.end()) return Status::failure(ENOTSUP, "the program has no vdso");
  const std::uint64_t instruction = find_call_instruction(program_memory, *vdso);
  if (instruction == 0)
    return Status::failure(ENOTSUP, "this kernel's vdso holds no system call instruction");
  const auto file = static_cast<std::uint64_t>(descriptor);
  PAWL_TRY(map_annex(thread, instruction, kAnnexCode, kPageBytes, PROT_READ | PROT_EXEC));
  PAWL_TRY(map_annex(thread, instruction, kAnnexList, kAnnexListBytes, PROT_READ | PROT_WRITE));
  const auto code = annex_code();
  if (::pwrite(program_memory, code.data(), code.size(), static_cast<off_t>(kAnnexCode)) !=
      static_cast<ssize_t>(code.size()))
    return FailedCall{errno, "cannot write into the program's memory"};
  list.clear();
  for (MemoryArea line : lines) {
    if (!must_move(line)) continue;
    PAWL_TRY(line.inode != 0 ? copy_file_line(thread, program_memory, line, memory)
                             : copy_line(program_memory, line, memory));
    if (line.inode != 0)
      origins.push_back({line.start, line.bytes(), true, line.offset, line.inode, line.name});
    if (line.name == "[stack]") {
      // It would grow by itself; a mapping of a file does not.
      line.start = std::min(line.start, line.end - stack_bytes(thread));
    }
    if (!list.has_room()) return Status::failure(ENOSPC, "the program has too many mappings");
    list.add(SYS_mmap, {line.start, line.bytes(), static_cast<std::uint64_t>(line.protection),
                        MAP_SHARED | MAP_FIXED, file, line.start});
  }
  int status = 0;
  if (run_calls(thread, list, status) != Ran::done) return lost("its memory was moved");
  for (std::size_t i = 0; i < list.count(); ++i)
    PAWL_TRY(check(list.call(i), "cannot map the memory file into the program"));
  return {};
}

}  // namespace pawl::wsp
