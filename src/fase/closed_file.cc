#include "fase/closed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <memory>

#include "fase/file.h"
#include "fase/undo_recovery.h"
#include "medium/descriptor.h"
#include "medium/regular_file.h"

namespace pawl::fase {
namespace {

// Bytes past the file's end are zeros.
Status read_at(const Descriptor& file, const std::string& path, void* into, std::size_t count,
               std::uint64_t offset) {
  auto* const bytes = static_cast<std::byte*>(into);
  std::fill_n(bytes, count, std::byte{0});
  std::size_t done = 0;
  while (done < count) {
    const ssize_t read =
        ::pread(file.get(), bytes + done, count - done, static_cast<off_t>(offset + done));
    if (read < 0 && errno != EINTR) return FailedCall{errno, "cannot read " + path};
    if (read == 0) break;
    if (read > 0) done += static_cast<std::size_t>(read);
  }
  return {};
}

}  // namespace

Result<ClosedFile> look_at_file(const std::string& path) {
  const auto opened = open_regular(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!opened.ok()) return opened.status();
  const Descriptor& file = opened.value();
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return FailedCall{errno, "cannot stat " + path};
  ClosedFile found;
  PAWL_TRY(read_at(file, path, &found.header, sizeof found.header, 0));
  PAWL_TRY(check_identity(found.header.identity, path, static_cast<std::uint64_t>(status.st_size)));
  found.fingerprint = recorded_fingerprint(found.header);
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  found.is_in_use = ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  if (!found.is_in_use) PAWL_TRY(check_scheme(found.header.scheme.scheme, path));
  const bool is_undo = found.header.scheme.scheme == static_cast<std::uint64_t>(Scheme::undo);
  std::vector<FoundUndo> to_undo;
  const auto log = std::make_unique<LogArea>();
  const auto undo = std::make_unique<UndoArea>();
  const auto logs = std::min<std::uint64_t>(found.header.logs_used, kThreadsMax);
  for (std::uint64_t i = 0; i < logs; ++i) {
    PAWL_TRY(read_at(file, path, log.get(), sizeof *log, kLogsOffset + i * kLogBytes));
    FoundLog of = read_log(*log);
    if (!of.chain.empty()) found.unfinished.push_back(std::move(of.chain));
    if (!is_undo) continue;
    PAWL_TRY(
        read_at(file, path, undo.get(), sizeof *undo, kSchemeLogsOffset + i * kSchemeLogBytes));
    to_undo.push_back(read_undo_log(*undo, *log, found.header.scheme.undone_below));
  }
  found.to_undo = find_interrupted(to_undo).size();
  return found;
}

Status check_is_finished(const std::string& path) {
  const auto found = look_at_file(path);
  if (!found.ok()) return found.status();
  PAWL_TRY(check_scheme(found.value().header.scheme.scheme, path));
  if (found.value().is_clean()) return {};
  return Status::failure(EBUSY, PAWL_ERROR_SECTIONS_UNFINISHED,
                         path +
                             " was left by a crash with sections to finish; recover it "
                             "first: 'pawl fase recover --binary PROGRAM FILE', or open it "
                             "with its program");
}

}  // namespace pawl::fase
