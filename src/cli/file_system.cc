#include "cli/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "mapping/options.h"
#include "medium/block_medium.h"
#include "medium/descriptor.h"
#include "medium/free_space.h"
#include "medium/mount_id.h"
#include "medium/new_file.h"
#include "medium/refused_file_systems.h"
#include "medium/size_limit.h"

namespace pawl::cli {

namespace {

constexpr off_t kTrialBytes = 64 * 1024;

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain.push_back(static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8)));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

// The mount that the directory was reached by.  Names do not tell: one mount may hide another.
void find_mount(FileSystemFacts& facts, int directory) {
  const std::string wanted = std::to_string(mount_of(directory));
  std::ifstream mounts("/proc/self/mountinfo");
  facts.has_proc = mounts.is_open();
  for (std::string line; std::getline(mounts, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string point;
    std::string options;
    before >> id >> parent >> device >> root >> point >> options;
    if (id != wanted) continue;
    std::istringstream after(line.substr(dash + 3));
    std::string super_options;
    after >> facts.type >> facts.source >> super_options;
    facts.source = unescape(facts.source);
    facts.mount_point = unescape(point);
    facts.options = options + "," + super_options;
  }
}

struct TypeByNumber {
  unsigned long number;  // of statfs(2)
  const char* type;
};
constexpr std::array kTypesByNumber = {
    TypeByNumber{0xef53, "ext4"},         TypeByNumber{0x58465342, "xfs"},
    TypeByNumber{0x9123683e, "btrfs"},    TypeByNumber{0xf2f52010, "f2fs"},
    TypeByNumber{0xca451a4e, "bcachefs"}, TypeByNumber{0x2fc12fc1, "zfs"},
    TypeByNumber{0x01021994, "tmpfs"},    TypeByNumber{0x858458f6, "ramfs"},
    TypeByNumber{0x794c7630, "overlay"},  TypeByNumber{0x6969, "nfs"},
    TypeByNumber{0xff534d42, "cifs"},     TypeByNumber{0xfe534d42, "smb3"},
    TypeByNumber{0x00c36400, "ceph"},     TypeByNumber{0x65735546, "fuse"},
};

// In a root directory that is no mount point no line of mountinfo is about what it is on.
void find_type_without_mount(FileSystemFacts& facts) {
  struct statfs status{};
  if (::statfs(facts.directory.c_str(), &status) != 0) return;
  const auto number = static_cast<unsigned long>(status.f_type);
  std::ostringstream unknown;
  unknown << "type 0x" << std::hex << number;
  facts.type = unknown.str();
  for (const TypeByNumber& known : kTypesByNumber) {
    if (known.number == number) facts.type = known.type;
  }
  for (const RefusedFileSystem& refused : kRefusedFileSystems) {
    if (refused.number == status.f_type) facts.type = refused.type;
  }
  if ((static_cast<unsigned long>(status.f_flags) & ST_RDONLY) != 0) facts.options = "ro";
}

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// btrfs and others give files a device number of their own, so the mount's source is asked too.
void find_disk(FileSystemFacts& facts, dev_t device) {
  struct stat source{};
  if (::stat(facts.source.c_str(), &source) == 0 && S_ISBLK(source.st_mode))
    device = source.st_rdev;
  const std::string link =
      "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::array<char, PATH_MAX> real{};
  if (::realpath(link.c_str(), real.data()) == nullptr) return;
  std::string directory = real.data();
  // A partition has its queue one level up.
  if (::access((directory + "/queue").c_str(), F_OK) != 0) {
    directory = directory.substr(0, directory.rfind('/'));
  }
  if (::access((directory + "/queue").c_str(), F_OK) != 0) return;
  facts.disk = directory.substr(directory.rfind('/') + 1);
  facts.write_cache = first_line_of(directory + "/queue/write_cache");
  facts.has_fua = first_line_of(directory + "/queue/fua") == "1";
}

void try_out(FileSystemFacts& facts) {
  const Result<Directory> directory = Directory::open(facts.directory + "/");
  const auto make = [&] {
    return facts.can_remove ? NewFile::make(directory.value())
                            : NewFile::make_nameless(directory.value());
  };
  const Result<NewFile> made = directory.ok() ? make() : Result<NewFile>(directory.status());
  if (!made.ok()) {
    facts.create_reason = std::strerror(made.status().error_number());
    return;
  }
  const int trial = made.value().descriptor();
  facts.can_create = true;
  facts.has_allocation =
      without_size_signal([&] { return ::fallocate(trial, 0, 0, kTrialBytes); }) == 0 ||
      is_want_of_space(errno) || code_of_size(errno, kTrialBytes) != PAWL_ERROR_NONE;
  facts.has_attributes = ::fsetxattr(trial, kMarkAttribute, "trial", 5, 0) == 0;
  const std::string again = link_to_descriptor(trial);
  const Descriptor direct(::open(again.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT));
  facts.has_direct_io = direct.valid();
}

}  // namespace

Result<FileSystemFacts> look_at_directory(const std::string& directory) {
  std::array<char, PATH_MAX> real{};
  if (::realpath(directory.c_str(), real.data()) == nullptr) {
    return FailedCall{errno, "cannot find " + directory};
  }
  FileSystemFacts facts;
  facts.directory = real.data();
  const Descriptor opened(::open(facts.directory.c_str(), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!opened.valid() || ::fstat(opened.get(), &status) != 0) {
    return FailedCall{errno, "cannot look at " + directory};
  }
  if (!S_ISDIR(status.st_mode)) {
    return Status::failure(ENOTDIR,
                           directory + " is not a directory; name the one that holds the file");
  }
  struct statx attributes{};
  facts.can_remove = ::statx(AT_FDCWD, real.data(), 0, STATX_TYPE, &attributes) != 0 ||
                     (attributes.stx_attributes & STATX_ATTR_APPEND) == 0;
  // Settings that are not understood no file is mapped with.
  const Result<Options> options = Options::from_environment();
  const Options used = options.ok() ? options.value() : Options{};
  facts.journal_bytes = used.journal_size_bytes;
  facts.first_journal_bytes = used.first_journal_bytes(0);
  facts.file_bytes_max = file_size_limit();
  struct statvfs space{};
  if (::statvfs(facts.directory.c_str(), &space) == 0) {
    facts.free_bytes = free_bytes_of(space);
  }
  find_mount(facts, opened.get());
  if (facts.has_proc && facts.mount_point.empty()) find_type_without_mount(facts);
  find_disk(facts, status.st_dev);
  try_out(facts);
  return facts;
}

}  // namespace pawl::cli
