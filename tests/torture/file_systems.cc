#include "torture/file_systems.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "torture/child.h"

namespace pawl::test {
namespace {

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;
constexpr std::uint64_t kFillPieceMin = 4096;
constexpr unsigned kFillPiecesMax = 4096;

struct Kind {
  const char* name;
  const char* type;
  std::uint64_t image_bytes;  // the least that its mkfs takes, or a little more
  std::vector<std::string> make;
};

const std::array<Kind, 4>& kinds_on_disk() {
  static const std::array<Kind, 4> kKinds = {{
      {"ext4", "ext4", 64 * kMebi, {"mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096"}},
      // With blocks smaller than pages.
      {"ext4-1k", "ext4", 64 * kMebi, {"mkfs.ext4", "-q", "-F", "-m", "0", "-b", "1024"}},
      {"xfs", "xfs", 320 * kMebi, {"mkfs.xfs", "-q", "-f"}},
      {"btrfs", "btrfs", 128 * kMebi, {"mkfs.btrfs", "-q", "-f"}},
  }};
  return kKinds;
}

std::string error_text() { return std::strerror(errno); }

// Empty, or what it had to say when it failed.
std::string run(const std::vector<std::string>& command) {
  std::string said;
  Child child = Child::of_program(command, [&](const std::string& line) { said += " " + line; });
  const int status = child.finish();
  return status == 0 ? "" : command[0] + " " + describe_end(status) + ":" + said;
}

// Empty, or why this process cannot mount anything.
std::string enter_own_namespace() {
  if (::geteuid() != 0) return "only root can mount";
  if (::unshare(CLONE_NEWNS) != 0) return "no mount namespace: " + error_text();
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return "the mount namespace does not become private: " + error_text();
  return "";
}

}  // namespace

FileSystems::FileSystems(const std::string& scratch) {
  std::filesystem::create_directories(scratch);
  own_ = std::filesystem::canonical(scratch).string() + "/torture-XXXXXX";
  if (::mkdtemp(own_.data()) == nullptr)
    throw std::runtime_error("cannot make a directory in " + scratch + ": " + error_text());
  refusal_ = enter_own_namespace();
}

FileSystems::~FileSystems() {
  for (const std::string& mount : mounts_) ::umount2(mount.c_str(), MNT_DETACH);
  std::error_code ignored;
  for (const std::string& directory : made_) std::filesystem::remove_all(directory, ignored);
  std::filesystem::remove_all(own_, ignored);
}

const std::vector<std::string>& FileSystems::kinds() {
  static const std::vector<std::string> kKinds = {"ext4", "ext4-1k", "xfs", "btrfs", "tmpfs"};
  return kKinds;
}

bool FileSystems::refuse(const std::string& kind, const std::string& reason) {
  left_out_.push_back(kind + ": " + reason);
  return false;
}

// Empty, or why it could not be made.
std::string FileSystems::mount_image(const std::string& kind, const std::string& directory) {
  const auto known = std::find_if(kinds_on_disk().begin(), kinds_on_disk().end(),
                                  [&](const Kind& one) { return one.name == kind; });
  if (known == kinds_on_disk().end()) return "not known here";
  const std::string image = directory + ".image";
  const Descriptor file(::open(image.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(known->image_bytes)) != 0)
    return "no image: " + error_text();
  std::vector<std::string> make = known->make;
  make.push_back(image);
  std::string failure = run(make);
  if (failure.empty()) failure = run({"mount", "-t", known->type, "-o", "loop", image, directory});
  // The loop device keeps it for as long as it needs it.
  ::unlink(image.c_str());
  return failure;
}

bool FileSystems::make(const std::string& kind) {
  if (!refusal_.empty()) return refuse(kind, refusal_);
  const std::string directory = own_ + "/" + kind;
  std::filesystem::create_directory(directory);
  if (kind == "tmpfs") {
    if (::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=16m") != 0)
      return refuse(kind, error_text());
  } else if (const std::string failure = mount_image(kind, directory); !failure.empty()) {
    return refuse(kind, failure);
  }
  mounts_.push_back(directory);
  // On tmpfs to look at a hole in a mapping takes space, and is SIGBUS where there is none, with or
  // without Pawl.
  places_.push_back({kind, directory, kind != "tmpfs"});
  return true;
}

void FileSystems::take_scratch() {
  const std::string directory = own_ + "/here";
  std::filesystem::create_directory(directory);
  places_.push_back({"here", directory, false});
}

void FileSystems::take_directory(const std::string& directory) {
  std::string own = std::filesystem::canonical(directory).string() + "/torture-XXXXXX";
  if (::mkdtemp(own.data()) == nullptr)
    throw std::runtime_error("cannot make a directory in " + directory + ": " + error_text());
  made_.push_back(own);
  places_.push_back({directory, own, false});
}

void Filler::fill(std::uint64_t left_bytes) {
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct statfs space{};
  if (::fstatfs(file_.get(), &space) != 0)
    throw std::runtime_error("cannot fill " + path_ + ": " + error_text());
  std::uint64_t piece = space.f_bavail * static_cast<std::uint64_t>(space.f_bsize);
  std::uint64_t end = 0;
  for (unsigned i = 0; i < kFillPiecesMax && piece >= kFillPieceMin; ++i) {
    if (::fallocate(file_.get(), 0, static_cast<off_t>(end), static_cast<off_t>(piece)) == 0)
      end += piece;
    else
      piece /= 2;
  }
  if (left_bytes > 0 && left_bytes < end) [[maybe_unused]]
    const int ignored = ::ftruncate(file_.get(), static_cast<off_t>(end - left_bytes));
}

void Filler::free() {
  if (!file_.valid()) return;
  ::unlink(path_.c_str());
  [[maybe_unused]] const int emptied = ::ftruncate(file_.get(), 0);
  // btrfs gives the space back with its next transaction.
  ::syncfs(file_.get());
  file_.reset(-1);
}

}  // namespace pawl::test
