#include "cli/watch/code_map.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "medium/memory_areas.h"
#include "tracing/process_memory.h"

namespace pawl::cli::watch {

namespace {

constexpr int kFramesMax = 64;
constexpr const char* kRawCall = "syscall";

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool contains(const std::vector<std::string>& names, const char* name) {
  for (const std::string& one : names) {
    if (one == name) return true;
  }
  return false;
}

bool is_of_stdio(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.starts_with("_IO_") || name.starts_with("freopen")) return true;
  }
  return false;
}

}  // namespace

const ElfFile* Libraries::at(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return nullptr;
  const auto key = std::pair(status.st_dev, status.st_ino);
  const auto found = files_.find(key);
  if (found != files_.end()) return found->second.get();
  if (files_.size() == kLibrariesMax) return nullptr;
  Result<ElfFile> read = read_elf_file(path);
  auto& place = files_[key];
  if (read.ok()) place = std::make_unique<ElfFile>(std::move(read.value()));
  return place.get();
}

bool Libraries::is_interposed(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (interposed_.contains(name)) return true;
  }
  return false;
}

void CodeMap::read(pid_t thread) {
  regions_.clear();
  is_read_ = true;
  visit_memory_areas("/proc/" + std::to_string(thread) + "/maps", [&](const MemoryArea& area) {
    if ((area.protection & PROT_EXEC) == 0) return true;
    Kind kind = Kind::other;
    const std::string name = name_of(area.name);
    if (name.starts_with("libc.so") || name.starts_with("libc-2.")) kind = Kind::libc;
    if (name.starts_with("ld-linux") || name.starts_with("ld-2.") || name == "[vdso]")
      kind = Kind::loader;
    regions_.push_back({area.start, area.end, area.offset, kind, area.name});
    return regions_.size() < kRegionsMax;
  });
  leave_one_libc();
}

void CodeMap::leave_one_libc() {
  const Region* own = nullptr;
  for (const Region& region : regions_) {
    if (region.kind != Kind::libc) continue;
    if (own == nullptr || region.begin == libc_begin_) own = &region;
  }
  libc_begin_ = own == nullptr ? 0 : own->begin;
  if (own == nullptr) return;
  const std::uint64_t base = own->begin - own->file_offset;
  for (Region& region : regions_) {
    if (region.kind == Kind::libc && region.begin - region.file_offset != base)
      region.kind = Kind::other;
  }
}

const CodeMap::Region* CodeMap::find(std::uint64_t address) const {
  for (const Region& region : regions_) {
    if (address >= region.begin && address < region.end) return &region;
  }
  return nullptr;
}

// Follows the frames of libc from the call outwards, until they leave libc.  The function entered
// last from outside is the one that a preloaded library could have stood before; so could it before
// a function of the same name within, which libc however calls by itself.
Origin CodeMap::origin_of(const Call& call) {
  if (!is_read_) read(call.thread);
  const Region* region = find(call.instruction - 1);
  if (region == nullptr) {
    read(call.thread);
    region = find(call.instruction - 1);
  }
  if (region == nullptr) return Origin::raw;
  if (region->kind == Kind::loader) return Origin::function;
  if (region->kind != Kind::libc) return Origin::raw;
  // A program in a root directory of its own has its own libc.
  const ElfFile* const libc =
      libraries_->at("/proc/" + std::to_string(call.thread) + "/root" + region->path);
  if (libc == nullptr) return Origin::function;

  std::uint64_t instruction = call.instruction;
  std::uint64_t rsp = call.stack;
  std::uint64_t rbp = call.frame;
  bool has_stdio = false;
  std::vector<std::string> names;
  for (int depth = 0; depth < kFramesMax; ++depth) {
    const std::uint64_t address =
        libc->address_of_offset(instruction - 1 - region->begin + region->file_offset);
    names = libc->names_at(address);
    if (depth == 0 && contains(names, kRawCall)) return Origin::raw;
    has_stdio = has_stdio || is_of_stdio(names);
    const std::optional<FrameRule> rule = libc->frames.rule_at(address);
    if (!rule) break;
    const std::uint64_t base =
        (rule->base_from_rbp ? rbp : rsp) + static_cast<std::uint64_t>(rule->base_offset);
    const auto return_address = tracing::read_object<std::uint64_t>(call.thread, base - 8);
    if (!return_address || *return_address == 0) break;
    if (rule->saved_rbp) {
      const auto saved = tracing::read_object<std::uint64_t>(
          call.thread, base + static_cast<std::uint64_t>(*rule->saved_rbp));
      if (!saved) break;
      rbp = *saved;
    }
    rsp = base;
    instruction = *return_address;
    region = find(instruction - 1);
    if (region == nullptr || region->kind != Kind::libc) {
      // `names` is what was called from outside.
      if (has_stdio) return Origin::stream;
      // The face has no need of these; within mkdtemp(3) they are libc's.
      if (contains(names, "mkdir") || contains(names, "mkdirat")) return Origin::function;
      return libraries_->is_interposed(names) ? Origin::function : Origin::inside_libc;
    }
  }
  // The stack of a thread that libc made for itself never leaves libc.
  return has_stdio ? Origin::stream : Origin::inside_libc;
}

}  // namespace pawl::cli::watch
