#include "fase/program.h"

#include <elf.h>
#include <link.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>

#include "medium/medium.h"

namespace pawl::fase {
namespace {

constexpr std::uint64_t kNotesBytesMax = std::uint64_t{1} << 20;
constexpr std::size_t kNoteAlignment = 4;

// The description of the note that the linker writes for --build-id.
std::vector<std::byte> find_build_id(std::span<const std::byte> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const std::uint64_t name_at = sizeof note;
    const std::uint64_t description_at = name_at + round_up(note.n_namesz, kNoteAlignment);
    const std::uint64_t next_at = description_at + round_up(note.n_descsz, kNoteAlignment);
    if (description_at + note.n_descsz > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
        std::memcmp(notes.data() + name_at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
      const auto description = notes.subspan(description_at, note.n_descsz);
      return {description.begin(), description.end()};
    }
    notes = notes.subspan(std::min<std::uint64_t>(next_at, notes.size()));
  }
  return {};
}

using Visit = std::function<bool(const dl_phdr_info&)>;

// Until visit returns true.
void for_each_object(const Visit& visit) {
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        return (*static_cast<const Visit*>(argument))(*info) ? 1 : 0;
      },
      const_cast<Visit*>(&visit));
}

std::span<const ElfW(Phdr)> headers_of(const dl_phdr_info& object) {
  return {object.dlpi_phdr, object.dlpi_phnum};
}

bool holds(const dl_phdr_info& object, const ElfW(Phdr) & header, std::uint64_t address) {
  return address - (object.dlpi_addr + header.p_vaddr) < header.p_memsz;
}

}  // namespace

constinit std::uint64_t Program::code_begin_ = 0;
constinit std::atomic<std::uint64_t> Program::code_bytes_{0};

void Program::find_code() {
  for_each_object([](const dl_phdr_info& object) {
    for (const auto& header : headers_of(object)) {
      if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0 || code_bytes_ != 0) continue;
      code_begin_ = object.dlpi_addr + header.p_vaddr;
      code_bytes_ = header.p_memsz;
    }
    return true;  // the first is the program
  });
}

// Never destroyed: threads may outlive main().
Program& Program::own() {
  static auto* const program = new Program;
  return *program;
}

void Program::add(const pawl_fase_function* begin, const pawl_fase_function* end) {
  is_registered_ = true;
  find_code();
  if (begin == end || (begin == begin_ && end == end_)) return;
  if (begin_ != end_) {
    has_other_table_ = true;
    return;
  }
  begin_ = begin;
  end_ = end;
  for (const auto* at = begin; at != end; ++at) by_address_.push_back(at);
  std::sort(by_address_.begin(), by_address_.end(), [](const auto* left, const auto* right) {
    return std::less<>()(left->address, right->address);
  });
}

void Program::keep(const pawl_fase_kept* begin, const pawl_fase_kept* end) {
  if (begin == kept_begin_) return;
  kept_begin_ = begin;
  kept_variables_.add(begin, end);
}

void Program::use(Scheme scheme) {
  if (scheme_ != Scheme::ido && scheme_ != scheme) has_other_scheme_ = true;
  scheme_ = scheme;
}

const pawl_fase_function* Program::find(const void* address) const {
  const auto number = [](const pawl_fase_function* of) {
    return reinterpret_cast<std::uint64_t>(of->address);
  };
  const auto wanted = reinterpret_cast<std::uint64_t>(address);
  const auto found =
      std::lower_bound(by_address_.begin(), by_address_.end(), wanted,
                       [&](const auto* of, std::uint64_t value) { return number(of) < value; });
  return found != by_address_.end() && number(*found) == wanted ? *found : nullptr;
}

Status Program::check() const {
  // FASEs of JUSTDO are finished as those of iDO are; they may be in one program.
  if (has_other_scheme_ || (scheme_ == Scheme::undo && has_functions())) {
    return Status::failure(ENOTSUP, PAWL_ERROR_UNSUPPORTED_PROGRAM,
                           "the program has failure-atomic sections of different schemes; compile "
                           "all of it with the same -fpawl=");
  }
  if (!has_functions()) return {};
  if (has_other_table_) {
    return Status::failure(ENOTSUP, PAWL_ERROR_UNSUPPORTED_PROGRAM,
                           "failure-atomic sections were compiled into a shared library and into "
                           "the program, or into two libraries; they must all be in the program, "
                           "so that it can be found again after a crash");
  }
  bool is_fixed = false;
  for_each_object([&](const dl_phdr_info& object) {
    for (const auto& header : headers_of(object)) {
      if (header.p_type != PT_LOAD ||
          !holds(object, header, reinterpret_cast<std::uint64_t>(begin_)))
        continue;
      is_fixed = object.dlpi_addr == 0;
      return true;
    }
    return false;
  });
  if (!is_fixed) {
    return Status::failure(ENOTSUP, PAWL_ERROR_UNSUPPORTED_PROGRAM,
                           "the program, or the library that has the failure-atomic sections, is "
                           "loaded at another address in each run; link the program with -no-pie, "
                           "and the sections into it, so that they can be finished after a crash");
  }
  if (fingerprint().empty()) {
    return Status::failure(ENOTSUP, PAWL_ERROR_UNSUPPORTED_PROGRAM,
                           "the program has no build-id, by which it could be known again after a "
                           "crash; link it with -Wl,--build-id");
  }
  return {};
}

std::vector<std::byte> Program::fingerprint() const {
  std::vector<std::byte> found;
  for_each_object([&](const dl_phdr_info& object) {
    for (const auto& header : headers_of(object)) {
      if (header.p_type != PT_NOTE || !found.empty()) continue;
      const std::uint64_t loaded_at = object.dlpi_addr + header.p_vaddr;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
      const auto* const notes = reinterpret_cast<const std::byte*>(loaded_at);
      found = find_build_id({notes, header.p_memsz});
    }
    return true;  // the first is the program
  });
  return found;
}

bool Program::is_constant(const void* at) const {
  const auto address = reinterpret_cast<std::uint64_t>(at);
  bool is_read_only = false;
  for_each_object([&](const dl_phdr_info& object) {
    if (object.dlpi_addr != 0) return true;
    bool is_writable = false;
    bool is_relocated = false;  // written by the dynamic linker, and not since
    bool is_loaded = false;
    for (const auto& header : headers_of(object)) {
      if (!holds(object, header, address)) continue;
      if (header.p_type == PT_LOAD) {
        is_loaded = true;
        is_writable = (header.p_flags & PF_W) != 0;
      }
      if (header.p_type == PT_GNU_RELRO) is_relocated = true;
    }
    is_read_only = is_loaded && (!is_writable || is_relocated);
    return true;
  });
  return is_read_only;
}

std::string fingerprint_text(std::span<const std::byte> fingerprint) {
  if (fingerprint.empty()) return "none";
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : fingerprint) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

Result<std::vector<std::byte>> fingerprint_of_file(const std::string& path) {
  const auto no_program = [&] {
    return Status::failure(ENOEXEC, PAWL_ERROR_WRONG_KIND_OF_FILE, path + " is no program");
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return FailedCall{errno == 0 ? EIO : errno, "cannot open " + path};
  ElfW(Ehdr) elf;
  if (!file.read(reinterpret_cast<char*>(&elf), sizeof elf)) return no_program();
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_phentsize != sizeof(ElfW(Phdr)))
    return no_program();
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    ElfW(Phdr) header;
    file.seekg(static_cast<std::streamoff>(elf.e_phoff + i * sizeof header));
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return no_program();
    if (header.p_type != PT_NOTE || header.p_filesz > kNotesBytesMax) continue;
    std::vector<std::byte> notes(header.p_filesz);
    file.seekg(static_cast<std::streamoff>(header.p_offset));
    if (!file.read(reinterpret_cast<char*>(notes.data()),
                   static_cast<std::streamsize>(notes.size())))
      return no_program();
    auto found = find_build_id(notes);
    if (!found.empty()) return found;
  }
  return std::vector<std::byte>{};
}

}  // namespace pawl::fase
