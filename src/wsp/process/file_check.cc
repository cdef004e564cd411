#include "wsp/process/file_check.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "wsp/process/bounded_child.h"
#include "wsp/process/layout.h"
#include "wsp/process/time_space.h"

namespace pawl::wsp {

namespace {

// Whether its file system lets it be executed, say.
Status check_mappable(int file, const std::string& name, int protection) {
  void* const place = ::mmap(nullptr, kPageBytes, protection, MAP_PRIVATE, file, 0);
  if (place == MAP_FAILED) {
    return FailedCall{errno, fmt::format("{} cannot be mapped as the program had it{}", name,
                                         errno == EPERM ? "; its file system is mounted noexec: "
                                                          "mount -o remount,exec"
                                                        : "")};
  }
  ::munmap(place, kPageBytes);
  return {};
}

// All of a file's together; what is written to is in the memory file.
std::map<std::string, int> protections_of_files(const SavedProcess& saved,
                                                const std::string& name_of_memory) {
  std::map<std::string, int> found;
  for (const SavedMapping& mapping : saved.mappings)
    found[mapping.facts.is_memory != 0 ? name_of_memory : mapping.name] |=
        mapping.facts.protection & (PROT_READ | PROT_EXEC);
  return found;
}

Status check_mapped(const SavedProcess& saved, const KeptMemory& memory, const SharedBytes& at) {
  const std::string name_of_memory = memory.directory().path_of("memory");
  std::map<std::string, int> protections = protections_of_files(saved, name_of_memory);
  at.note(name_of_memory);
  PAWL_TRY(check_mappable(memory.memory(), name_of_memory, protections[name_of_memory]));
  std::set<std::string> checked;
  for (const SavedMapping& mapping : saved.mappings) {
    if (mapping.facts.is_memory != 0 || !checked.insert(mapping.name).second) continue;
    at.note(mapping.name);
    struct stat file{};
    const Result<Descriptor> found = open_mapped(mapping.name, proof_of(mapping.facts), saved);
    if (!found.ok() && found.status().error_number() != ESTALE)
      return found.status().with_text("of a file that the program had mapped: " +
                                      found.status().text());
    const bool is_same = found.ok() && ::fstat(found.value().get(), &file) == 0;
    const std::int64_t changed = file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec;
    if (!is_same || static_cast<std::uint64_t>(file.st_size) != mapping.facts.file_bytes ||
        changed != mapping.facts.changed_ns)
      return Status::failure(ESTALE,
                             mapping.name +
                                 " is another file than the program had mapped: it was changed or "
                                 "replaced since; start the program anew");
    PAWL_TRY(check_mappable(found.value().get(), mapping.name, protections[mapping.name]));
  }
  return {};
}

bool is_open_file(const SavedDescriptor& descriptor) {
  return descriptor.facts.kind == static_cast<std::uint32_t>(DescriptorKind::file) &&
         descriptor.facts.same_as < 0;
}

template <class Check>
Status check_open(const SavedProcess& saved, const SharedBytes& at, Check check) {
  for (const SavedDescriptor& descriptor : saved.descriptors) {
    if (!is_open_file(descriptor)) continue;
    at.note(descriptor.text);
    const Status found = check(descriptor);
    if (found.ok()) continue;
    return found.with_text(fmt::format("descriptor {} cannot be opened again: {}",
                                       descriptor.facts.number, found.text()));
  }
  return {};
}

Status try_files(std::chrono::milliseconds longest,
                 const std::function<Status(const SharedBytes& at)>& check,
                 std::vector<int> kept = {}) {
  const SharedBytes at(PATH_MAX);
  if (at.data() == nullptr) return Status::no_memory("no memory to look at files");
  Status found = try_in_child(longest, [&] { return check(at); }, std::move(kept));
  if (found.error_number() != ETIMEDOUT) return found;
  return server_is_silent(at.noted());
}

}  // namespace

Status server_is_silent(const std::string& name) {
  return Status::failure(ETIMEDOUT, name + " cannot be opened: its file server does not answer");
}

Result<Descriptor> open_mapped(const std::string& name, const FileProof& had,
                               const SavedProcess& saved) {
  return open_file(name, had, O_RDONLY, saved, is_of_this_boot(saved.system));
}

Status check_saved_files(const SavedProcess& saved, const KeptMemory& memory,
                         std::chrono::milliseconds longest) {
  const auto check = [&](const SharedBytes& at) -> Status {
    PAWL_TRY(check_mapped(saved, memory, at));
    return check_open(saved, at, [&saved](const SavedDescriptor& one) {
      return open_again(one, saved).status();
    });
  };
  return try_files(longest, check, {memory.memory()});
}

Status foresee_files(const SavedProcess& saved, std::chrono::milliseconds longest) {
  if (std::none_of(saved.descriptors.begin(), saved.descriptors.end(), is_open_file)) return {};
  return try_files(longest, [&saved](const SharedBytes& at) {
    return check_open(saved, at, [&saved](const SavedDescriptor& one) {
      return one.is_served ? open_again(one, saved).status() : foresee_way(one, saved);
    });
  });
}

}  // namespace pawl::wsp
