#include "cli/linked_libraries.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "track/store_modules.h"

namespace pawl::cli {
namespace {

constexpr std::size_t kDirectoriesMax = 128;  // of one list
constexpr std::size_t kListBytesMax = std::size_t{64} << 10;

using Words = std::vector<std::string>;

// /etc/ld.so.cache as glibc has written it since 2.32 (glibc's dl-cache.h).
class LoaderCache {
 public:
  LoaderCache() {
    Result<FileBytes> read = FileBytes::read(kPath, kBytesMax);
    if (!read.ok()) return;
    bytes_ = std::move(read.value());
    const auto* const magic = bytes_.at<char>(0, kMagic.size());
    const auto* const count = bytes_.at<std::uint32_t>(kMagic.size(), 1);
    if (magic == nullptr || count == nullptr || std::string_view(magic, kMagic.size()) != kMagic)
      return;
    entries_ = bytes_.at<Entry>(kHeaderBytes, *count);
    count_ = entries_ == nullptr ? 0 : *count;
  }

  // Those that are for every processor; of whichever kind the machine has programs of.
  Words paths_of(const std::string& name) const {
    Words paths;
    for (std::size_t i = 0; i < count_ && paths.size() < kDirectoriesMax; ++i) {
      if (entries_[i].processor != 0 || bytes_.text(entries_[i].name, PATH_MAX) != name) continue;
      paths.push_back(bytes_.text(entries_[i].path, PATH_MAX));
    }
    return paths;
  }

 private:
  struct Entry {
    std::uint32_t flags, name, path, unused;
    std::uint64_t processor;
  };
  static constexpr const char* kPath = "/etc/ld.so.cache";
  static constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  static constexpr std::size_t kHeaderBytes = 48;
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;

  FileBytes bytes_;
  const Entry* entries_ = nullptr;
  std::size_t count_ = 0;
};

// What a module says of the libraries that it needs.
struct Needs {
  std::string origin;  // the module's directory
  Words names;
  bool has_runpath = false;
  Words runpath;
  Words rpath;  // with those of the modules that need this one
};

std::string directory_of(const std::string& path) {
  std::error_code none;
  return std::filesystem::absolute(path, none).parent_path().string();
}

// Empty where it has what is not known, or is longer than a path.
std::string with_origin(std::string text, const std::string& origin) {
  for (const std::string_view name : {"${ORIGIN}", "$ORIGIN"}) {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += origin.size()) {
      text.replace(at, name.size(), origin);
      if (text.size() > PATH_MAX) return {};
    }
  }
  return text.find('$') == std::string::npos && text.size() <= PATH_MAX ? text : std::string();
}

Words directories_in(std::string_view list, const char* separators, const std::string& origin) {
  Words directories;
  while (directories.size() < kDirectoriesMax) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    const std::string written(list.substr(0, end));
    const std::string directory = written.empty() ? "." : with_origin(written, origin);
    if (!directory.empty()) directories.push_back(directory);
    if (end == list.size()) break;
    list.remove_prefix(end + 1);
  }
  return directories;
}

class Search {
 public:
  Search(const ElfImage& program, const std::string& origin, const LinkedLibraries& visitor)
      : visitor_(visitor), machine_(program.header().e_machine) {
    if (const char* const list = std::getenv("LD_LIBRARY_PATH"); list != nullptr && *list != '\0')
      of_environment_ = directories_in(list, ":;", origin);
    note(program, origin, {});
  }

  void go() {
    for (; !waiting_.empty(); waiting_.pop_front()) {
      for (const std::string& name : waiting_.front().names) find(name, waiting_.front());
    }
    if (count_ > kLibrariesMax)
      visitor_.not_read("others", fmt::format("more than {} libraries", kLibrariesMax));
  }

 private:
  // Its libraries are looked for after those that were noted before.
  void note(const ElfImage& module, const std::string& origin, const Words& inherited) {
    Needs needs;
    needs.origin = origin;
    std::vector<std::uint64_t> names;
    std::uint64_t strings_address = 0;
    std::uint64_t runpath = 0;
    std::uint64_t rpath = 0;
    std::uint64_t own_name = 0;
    for (const Elf64_Dyn& entry : dynamic_section_of(module)) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_STRTAB) strings_address = entry.d_un.d_ptr;
      if (entry.d_tag == DT_RUNPATH) runpath = entry.d_un.d_val;
      if (entry.d_tag == DT_RPATH) rpath = entry.d_un.d_val;
      if (entry.d_tag == DT_SONAME) own_name = entry.d_un.d_val;
      if (entry.d_tag == DT_NEEDED && names.size() <= kLibrariesMax)
        names.push_back(entry.d_un.d_val);
    }
    const std::uint64_t strings = module.offset_of(strings_address);
    const auto text = [&](std::uint64_t at, std::size_t bytes_max) {
      const std::size_t size = module.bytes().size();
      return strings > size || at > size ? std::string()
                                         : module.bytes().text(strings + at, bytes_max);
    };
    const auto list = [&](std::uint64_t at) {
      return at == 0 ? Words() : directories_in(text(at, kListBytesMax), ":", origin);
    };
    if (own_name != 0) seen_.insert(text(own_name, PATH_MAX));
    for (const std::uint64_t at : names) {
      const std::string name = text(at, PATH_MAX);
      if (is_wrapped_library(name) || !seen_.insert(name).second) continue;
      if (++count_ > kLibrariesMax) break;
      needs.names.push_back(name);
    }
    needs.has_runpath = runpath != 0;
    needs.runpath = list(runpath);
    if (!needs.has_runpath) needs.rpath = list(rpath);
    needs.rpath.insert(needs.rpath.end(), inherited.begin(), inherited.end());
    needs.rpath.resize(std::min(needs.rpath.size(), kDirectoriesMax));
    waiting_.push_back(std::move(needs));
  }

  static std::span<const Elf64_Dyn> dynamic_section_of(const ElfImage& module) {
    for (const Elf64_Phdr& segment : module.segments()) {
      if (segment.p_type != PT_DYNAMIC) continue;
      const std::size_t count = segment.p_filesz / sizeof(Elf64_Dyn);
      const auto* const first = module.bytes().at<Elf64_Dyn>(segment.p_offset, count);
      return {first, first == nullptr ? 0 : count};
    }
    return {};
  }

  void find(const std::string& name, const Needs& needs) {
    std::string why = "not found";
    for (const std::string& path : places_of(name, needs)) {
      Result<ElfImage> read = ElfImage::read(path, std::min(kModuleBytesMax, bytes_left_));
      if (read.ok() && read.value().header().e_machine != machine_)
        read = Status::failure(ENOEXEC, path + " is for another machine");
      if (read.ok()) {
        bytes_left_ -= read.value().bytes().size();
        visitor_.found(path, read.value());
        note(read.value(), directory_of(path), needs.rpath);
        return;
      }
      const int error_number = read.status().error_number();
      if (error_number == ENOENT || error_number == ENOTDIR) continue;
      why = read.status().text();
      // The loader, too, goes on behind these only.
      if (error_number != EACCES && error_number != ENOEXEC) break;
    }
    visitor_.not_read(name, why);
  }

  Words places_of(const std::string& name, const Needs& needs) const {
    if (name.find('/') != std::string::npos) {
      const std::string path = with_origin(name, needs.origin);
      return path.empty() ? Words() : Words{path};
    }
    Words places;
    const auto add = [&](const auto& directories) {
      for (const auto& directory : directories)
        places.push_back(std::string(directory) + "/" + name);
    };
    if (!needs.has_runpath) add(needs.rpath);
    add(of_environment_);
    add(needs.runpath);
    const Words cached = cache_.paths_of(name);
    places.insert(places.end(), cached.begin(), cached.end());
    add(kSystemDirectories);
    return places;
  }

  static constexpr std::array<const char*, 8> kSystemDirectories = {"/lib/x86_64-linux-gnu",
                                                                    "/usr/lib/x86_64-linux-gnu",
                                                                    "/lib/aarch64-linux-gnu",
                                                                    "/usr/lib/aarch64-linux-gnu",
                                                                    "/lib64",
                                                                    "/usr/lib64",
                                                                    "/lib",
                                                                    "/usr/lib"};

  const LinkedLibraries& visitor_;
  const Elf64_Half machine_;
  const LoaderCache cache_;
  Words of_environment_;
  std::deque<Needs> waiting_;
  std::set<std::string> seen_;
  std::size_t count_ = 0;  // of names; those past the bound are not looked for
  std::size_t bytes_left_ = kLibrariesBytesMax;
};

}  // namespace

void visit_linked_libraries(const std::string& path, const ElfImage& program,
                            const LinkedLibraries& visitor) {
  // The kernel tells a program's place without links.
  std::error_code none;
  Search(program, directory_of(std::filesystem::canonical(path, none).string()), visitor).go();
}

}  // namespace pawl::cli
