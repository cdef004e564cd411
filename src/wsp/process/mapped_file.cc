#include "wsp/process/mapped_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "wsp/process/layout.h"
#include "wsp/process/program_rights.h"

namespace pawl::wsp {

namespace {

Status is_another(const std::string& name) {
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

Result<MappedFile> find_mapped_file(const MemoryArea& line, const SavedProcess& program) {
  const Descriptor mapped(::open(
      fmt::format("/proc/{}/map_files/{:x}-{:x}", program.process.process, line.start, line.end)
          .c_str(),
      O_PATH | O_CLOEXEC));
  FileProof proof;
  if (mapped.valid()) {
    if (!prove_file(mapped.get(), "", proof)) return is_another(line.name);
    Result<Descriptor> found = find_file(line.name, proof, true);
    if (!found.ok()) return is_another(line.name);
    return MappedFile{std::move(found.value()), proof};
  }
  Descriptor found(::open(line.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.valid() || !prove_file(found.get(), "", proof) || proof.type != S_IFREG)
    return is_another(line.name);
  proof.is_certain = proof.device == line.device && proof.inode == line.inode;
  if (!proof.is_certain && !can_be_mapped_as(found, line, program)) {
    return Status::failure(
        ENOTSUP, "whether the program has " + line.name +
                     " mapped, or another file, is known only with CAP_CHECKPOINT_RESTORE, or "
                     "where the program may read it");
  }
  return MappedFile{std::move(found), proof};
}

}  // namespace pawl::wsp
