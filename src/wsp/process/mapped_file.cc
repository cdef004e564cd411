#include "wsp/process/mapped_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <new>
#include <optional>
#include <string>

#include "wsp/process/bounded_child.h"
#include "wsp/process/layout.h"
#include "wsp/process/program_rights.h"

namespace pawl::wsp {

namespace {

Status is_not_there(const std::string& name) {
  return Status::failure(ENOTSUP,
                         "the mapped file " + name + " is not there any more under its name");
}

// Opened by the program's rights, and mapped once more.
bool can_be_mapped_as(const Descriptor& found, const MemoryArea& line,
                      const SavedProcess& program) {
  const Result<ProgramRights> rights = ProgramRights::take(program);
  if (!rights.ok()) return false;
  const Descriptor file(::open(link_to_descriptor(found.get()).c_str(),
                               O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return file.valid() && is_mapped_as(file, line);
}

bool read_facts(const Descriptor& found, MappedFile& into) {
  struct statx facts{};
  if (!prove_known_file(found.get(), "", into.proof) ||
      ::statx(found.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME,
              &facts) != 0)
    return false;
  into.bytes = facts.stx_size;
  into.changed_ns = facts.stx_mtime.tv_sec * 1'000'000'000 + facts.stx_mtime.tv_nsec;
  return true;
}

Result<MappedFile> judge(const Descriptor& named, const MemoryArea& line,
                         const SavedProcess& program) {
  MappedFile file;
  FileProof& proof = file.proof;
  if (!read_facts(named, file) || proof.type != S_IFREG) return is_not_there(line.name);
  proof.is_certain = proof.device == line.device && proof.inode == line.inode;
  if (!proof.is_certain && !can_be_mapped_as(named, line, program)) {
    return Status::failure(
        ENOTSUP, "whether the program has " + line.name +
                     " mapped, or another file, is known only with CAP_CHECKPOINT_RESTORE, or "
                     "where the program may read it");
  }
  return file;
}

// Whoever opens a file of a server asks that, and another file may have got the name.
bool is_judged_without_server(const Descriptor& named, const MemoryArea& line, MountTable& mounts) {
  FileProof proof;
  if (prove_known_file(named.get(), "", proof) && proof.device == line.device &&
      proof.inode == line.inode)
    return true;
  const std::optional<Mount> mount = mounts.find(mount_number_of(named.get()));
  return answers_by_itself(mount) || (mount && mount->type == "overlay");
}

Result<MappedFile> ask_server(const MemoryArea& line, const SavedProcess& program) {
  const SharedBytes told(sizeof(MappedFile));
  if (told.data() == nullptr) return Status::no_memory("no memory to look at a mapped file");
  auto* const found = new (told.data()) MappedFile;
  const Status asked = try_in_child(kServerTimeMax, [&]() -> Status {
    const Descriptor named(::open(line.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    const Result<MappedFile> judged =
        named.valid() ? judge(named, line, program) : Result<MappedFile>(is_not_there(line.name));
    if (judged.ok()) *found = judged.value();
    return judged.ok() ? Status{} : judged.status();
  });
  if (asked.ok()) return *found;
  if (asked.error_number() == ETIMEDOUT)
    return asked.with_text("the file server of the mapped file " + line.name +
                           " does not answer; with CAP_CHECKPOINT_RESTORE a save need not ask it");
  return asked;
}

}  // namespace

bool is_mapped_as(const Descriptor& file, const MemoryArea& line) {
  void* const mapped = ::mmap(nullptr, kPageBytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  const auto start = reinterpret_cast<std::uint64_t>(mapped);
  bool is_same = false;
  visit_memory_areas(kOwnMemoryAreas, [&](const MemoryArea& own) {
    if (own.end <= start) return true;
    is_same = own.start <= start && own.device == line.device && own.inode == line.inode;
    return false;
  });
  ::munmap(mapped, kPageBytes);
  return is_same;
}

std::string link_to_mapped(pid_t process, const MemoryArea& line) {
  return fmt::format("/proc/{}/map_files/{:x}-{:x}", process, line.start, line.end);
}

Result<MappedFile> find_mapped_file(const MemoryArea& line, const SavedProcess& program,
                                    MountTable& mounts) {
  const Descriptor mapped(
      ::open(link_to_mapped(program.process.process, line).c_str(), O_PATH | O_CLOEXEC));
  if (mapped.valid()) {
    MappedFile file;
    if (!read_facts(mapped, file)) return is_not_there(line.name);
    const Result<Descriptor> named = find_known_file(line.name, file.proof);
    const int error_number = named.ok() ? 0 : named.status().error_number();
    const bool is_only_unknown = error_number == EAGAIN && !is_elsewhere(line.name, error_number);
    if (!named.ok() && !is_only_unknown) return is_not_there(line.name);
    return file;
  }
  const Result<Descriptor> named = open_known(AT_FDCWD, line.name);
  if (!named.ok() && named.status().error_number() != EAGAIN) return is_not_there(line.name);
  if (named.ok() && is_judged_without_server(named.value(), line, mounts))
    return judge(named.value(), line, program);
  return ask_server(line, program);
}

}  // namespace pawl::wsp
