#include "medium/kept_journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>

#include "medium/new_file.h"
#include "medium/permissions.h"

namespace pawl {
namespace {

constexpr int kNamesMax = 100;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::string kept_name(const std::string& journal, int attempt) {
  std::string kept = journal + ".damaged";
  if (attempt > 0) kept.append(".").append(std::to_string(attempt));
  return kept;
}

// Without its holes: who may write it can make it as long as a file can be.
Status copy_bytes(int from, off_t size, DescriptorFile& to, const std::string& path) {
  const auto piece = std::make_unique<std::byte[]>(kPieceBytes);
  for (off_t at = 0;;) {
    const off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return to.resize(static_cast<std::uint64_t>(size));
    if (data > at) at = data;
    const ssize_t got = ::pread(from, piece.get(), kPieceBytes, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailedCall{errno, "cannot read " + path};
    if (got == 0) return {};
    PAWL_TRY(to.write(static_cast<std::uint64_t>(at),
                      std::span(piece.get(), static_cast<std::size_t>(got))));
    at += got;
  }
}

Result<NewFile> copy_of(const Directory& directory, const std::string& path, int side, off_t size) {
  auto copy = NewFile::make(directory);
  if (!copy.ok()) return copy;
  PAWL_TRY(copy_bytes(side, size, copy.value().file(), path));
  PAWL_TRY(adopt_permissions(side, copy.value().descriptor(), 0666, "the copy of " + path));
  return copy;
}

}  // namespace

Result<std::string> keep_aside(const Directory& directory, const std::string& path, int side,
                               Kept kept) {
  const std::string name = name_in_directory(path);
  struct stat held{};
  if (::fstat(side, &held) != 0) return FailedCall{errno, "cannot stat " + path};
  const auto is_there = directory.has(name, held);
  if (!is_there.ok()) return is_there.status();
  if (!is_there.value())
    return Status::failure(ESTALE, PAWL_ERROR_REPLACED,
                           path + " is another file by now; nothing was changed");
  std::optional<NewFile> copy;
  if (kept == Kept::copy) {
    auto made = copy_of(directory, path, side, held.st_size);
    if (!made.ok()) return made.status();
    copy.emplace(std::move(made.value()));
  }
  for (int attempt = 0; attempt < kNamesMax; ++attempt) {
    const std::string kept_path = kept_name(path, attempt);
    const std::string to = name_in_directory(kept_path);
    Status done;
    if (copy.has_value()) {
      done = copy->publish(kept_path, false);
    } else if (::renameat2(directory.get(), name.c_str(), directory.get(), to.c_str(),
                           RENAME_NOREPLACE) != 0) {
      done = FailedCall{errno, "cannot rename " + path + " to " + kept_path};
    }
    if (done.ok()) return kept_path;
    if (done.error_number() != EEXIST) return done;
  }
  return Status::failure(EEXIST,
                         "there are too many damaged journals beside " + path + "; remove some");
}

}  // namespace pawl
