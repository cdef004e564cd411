#include "medium/new_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <utility>

#include "medium/random_bytes.h"

namespace pawl {
namespace {

constexpr int kNameAttemptsMax = 100;

bool cannot_be_nameless(int error_number) {
  return error_number == EOPNOTSUPP || error_number == EISDIR || error_number == ENOENT ||
         error_number == EINVAL || error_number == ENOSYS;
}

Status exists(const std::string& to) {
  return Status::failure(
      EEXIST, PAWL_ERROR_COPY_TARGET_EXISTS,
      to + " exists already; remove it, choose another name, or say that it may be "
           "replaced (--force)");
}

}  // namespace

// Short, whatever the final name is: that may be as long as a name can be.
Result<std::string> draw_provisional_name() {
  std::uint64_t number = 0;
  PAWL_TRY(draw_random(std::as_writable_bytes(std::span(&number, 1))));
  char name[40];
  std::snprintf(name, sizeof name, "%s%016" PRIx64, kProvisionalPrefix, number);
  return std::string(name);
}

Status rename_in(const Directory& directory, const std::string& from, const std::string& to) {
  if (::renameat2(directory.get(), from.c_str(), directory.get(), to.c_str(), RENAME_NOREPLACE) ==
      0)
    return {};
  // A file system that does not know the flag knows links, perhaps.
  if (errno == EINVAL &&
      ::linkat(directory.get(), from.c_str(), directory.get(), to.c_str(), 0) == 0) {
    ::unlinkat(directory.get(), from.c_str(), 0);
    return {};
  }
  return FailedCall{errno, "cannot rename " + directory.path() + from + " to " + to};
}

NewFile::NewFile(Descriptor descriptor, const Directory& directory, std::string provisional)
    : directory_(&directory), provisional_(std::move(provisional)) {
  file_ = std::make_unique<DescriptorFile>(
      std::move(descriptor),
      provisional_.empty() ? "a new file in " + directory.path() : directory.path() + provisional_);
}

NewFile::NewFile(NewFile&& other) noexcept
    : file_(std::move(other.file_)),
      directory_(other.directory_),
      provisional_(std::exchange(other.provisional_, {})),
      has_name_(other.has_name_) {}

NewFile::~NewFile() {
  if (!provisional_.empty()) ::unlinkat(directory_->get(), provisional_.c_str(), 0);
}

Result<NewFile> NewFile::make_nameless(const Directory& directory) {
  Descriptor file(::openat(directory.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.valid()) return NewFile(std::move(file), directory, {});
  const Status failed = FailedCall{errno, "cannot make a file in " + directory.path()};
  if (!cannot_be_nameless(failed.error_number())) return failed;
  return Status::failure(EOPNOTSUPP, failed.text());
}

Result<NewFile> NewFile::make(const Directory& directory) {
  PAWL_TRY(directory.can_flush());
  auto nameless = make_nameless(directory);
  if (nameless.ok() || nameless.status().error_number() != EOPNOTSUPP) return nameless;
  for (int attempt = 0; attempt < kNameAttemptsMax; ++attempt) {
    const auto name = draw_provisional_name();
    if (!name.ok()) return name.status();
    Descriptor file(::openat(directory.get(), name.value().c_str(),
                             O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (file.valid()) return NewFile(std::move(file), directory, name.value());
    if (errno != EEXIST) break;
  }
  return FailedCall{errno, "cannot make a file in " + directory.path()};
}

// EEXIST as it comes.
Status NewFile::take_name(const std::string& name) const {
  if (!provisional_.empty()) return rename_in(*directory_, provisional_, name);
  const std::string open_file = link_to_descriptor(descriptor());
  if (::linkat(AT_FDCWD, open_file.c_str(), directory_->get(), name.c_str(), AT_SYMLINK_FOLLOW) ==
      0)
    return {};
  return FailedCall{errno, "cannot name the new file " + directory_->path() + name};
}

Status NewFile::take_provisional_name() {
  if (!provisional_.empty()) return {};
  Status named;
  for (int attempt = 0; attempt < kNameAttemptsMax; ++attempt) {
    auto name = draw_provisional_name();
    if (!name.ok()) return name.status();
    named = take_name(name.value());
    if (named.ok()) provisional_ = std::move(name.value());
    if (named.error_number() != EEXIST) return named;
  }
  return named;
}

Status NewFile::publish(const std::string& to, bool may_replace) {
  file_->metadata_changed();
  PAWL_TRY(file_->flush());
  const std::string name = name_in_directory(to);
  Status named = take_name(name);
  if (named.error_number() == EEXIST) {
    if (!may_replace) return exists(to);
    PAWL_TRY(take_provisional_name());
    if (::renameat(directory_->get(), provisional_.c_str(), directory_->get(), name.c_str()) != 0)
      return FailedCall{errno, "cannot replace " + to};
    named = {};
  }
  PAWL_TRY(named);
  provisional_.clear();
  has_name_ = true;
  // Where the file had no name until now, that it has one is a matter of the file as well.
  file_->metadata_changed();
  PAWL_TRY(file_->flush());
  return directory_->flush();
}

}  // namespace pawl
