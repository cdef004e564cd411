// The C border: POSIX arguments in, errno and last-error text out.  No exception passes it.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <string>

#include "mapping/border.h"
#include "mapping/file_turn.h"
#include "mapping/last_error.h"
#include "mapping/map_atomic.h"
#include "mapping/mapping.h"
#include "mapping/memory_calls.h"
#include "mapping/open_mappings.h"
#include "mapping/power.h"
#include "mapping/statistics.h"
#include "medium/block_medium.h"
#include "medium/named_medium.h"
#include "medium/open_medium.h"
#include "pawl/pawl.h"

namespace {

using pawl::FailedCall;
using pawl::finish;
using pawl::invalid;
using pawl::Options;
using pawl::Status;
using pawl::Window;

Status not_mapped() {
  return Status::failure(
      ENOMEM, PAWL_ERROR_NOT_MAPPED,
      "the address is in no atomic mapping of this process (was the file mapped with pawl_mmap?)");
}

// `caller` is the program's code that asked.
void* map_or_fail(void* address, std::size_t length, int protection, int flags, int descriptor,
                  off_t offset, const pawl_options* options, const void* caller) {
  void* result = MAP_FAILED;
  finish([&] {
    return pawl::map_atomic({address, length, protection, flags, descriptor, offset, caller},
                            options, &result);
  });
  return result;
}

// What a crash left in the journal, the size as well, would come back over what is done to the
// file.
Status recover_before_resize(int descriptor) {
  const auto is_left = pawl::is_left_by_crash(descriptor);
  if (!is_left.ok()) return is_left.status();
  if (!is_left.value()) return {};
  const auto medium = pawl::open_medium(descriptor, pawl::MediumKind::block);
  if (!medium.ok()) return medium.status();
  return pawl::recover_with_group(*medium.value()).status();
}

}  // namespace

extern "C" {

PAWL_PUBLIC int pawl_options_init(struct pawl_options* options) {
  return finish([&]() -> Status {
    if (options == nullptr) return invalid("options must not be NULL");
    auto environment = Options::from_environment();
    if (!environment.ok()) return environment.status();
    *options = environment.value().to_public();
    return {};
  });
}

PAWL_PUBLIC void* pawl_mmap(void* addr, size_t length, int prot, int flags, int fd, off_t offset) {
  return map_or_fail(addr, length, prot, flags, fd, offset, nullptr, __builtin_return_address(0));
}

PAWL_PUBLIC void* pawl_mmap_with(void* addr, size_t length, int prot, int flags, int fd,
                                 off_t offset, const struct pawl_options* options) {
  return map_or_fail(addr, length, prot, flags, fd, offset, options, __builtin_return_address(0));
}

PAWL_PUBLIC int pawl_msync(void* addr, size_t length, int flags) {
  pawl::cancellation_point();
  return finish([&]() -> Status {
    const auto mapping = pawl::open_mappings::find(addr);
    if (mapping == nullptr) return not_mapped();
    return pawl::memory_calls::synchronise(*mapping, addr, length, flags);
  });
}

PAWL_PUBLIC int pawl_wait(void* addr) {
  pawl::cancellation_point();
  return finish([&]() -> Status {
    const auto mapping = pawl::open_mappings::find(addr);
    return mapping == nullptr ? not_mapped() : mapping->wait();
  });
}

PAWL_PUBLIC void pawl_power_failing(int is_failing) {
  pawl::the_power_is_failing.store(is_failing != 0);
}

PAWL_PUBLIC int pawl_munmap(void* addr, size_t length) {
  return finish([&]() -> Status {
    Window window;
    const auto found = pawl::open_mappings::find(addr, &window);
    if (found == nullptr || window.address != addr ||
        window.length != pawl::round_up(length, pawl::kPageBytes)) {
      return invalid(
          "an atomic mapping is unmapped whole, with the address and the length it was mapped "
          "with");
    }
    if (found->is_of_other_memory())
      return pawl::memory_calls::unmap_copy(*found, pawl::range_of(window.address, window.length));
    PAWL_TRY(found->in_own_process());
    const auto closed = pawl::open_mappings::close(*found, addr);
    if (!closed.ok()) return closed.status();
    return closed.value() ? Status{} : not_mapped();  // another thread was first
  });
}

PAWL_PUBLIC int pawl_ftruncate(int fd, off_t length) {
  return finish([&]() -> Status {
    if (length < 0) return invalid("a file cannot have a negative size");
    const int access = ::fcntl(fd, F_GETFL);
    if (access < 0) return pawl::cannot_read_flags(fd, errno);
    if ((access & O_ACCMODE) == O_RDONLY) return invalid("the fd is not open for writing");
    // Where that cannot be told the file is not touched: cut past its journal it would lose
    // commits.
    struct stat file{};
    if (::fstat(fd, &file) != 0)
      return FailedCall{
          errno, "cannot find out which file descriptor " + std::to_string(fd) + " has open"};
    const auto size_bytes = static_cast<std::uint64_t>(length);
    const pawl::FileTurn turn(pawl::FileTurn::To::resize, file.st_dev, file.st_ino);
    const auto found = pawl::open_mappings::find_file(file.st_dev, file.st_ino);
    if (found.whose != nullptr) {
      return Status::failure(EBUSY, PAWL_ERROR_STILL_OPEN,
                             std::string("cannot set the size of a file that is open as ") +
                                 found.whose +
                                 ": it has the size that this needs. Close that first");
    }
    if (found.mapping != nullptr) return found.mapping->truncate(size_bytes);
    PAWL_TRY(recover_before_resize(fd));
    if (::ftruncate(fd, length) != 0) return FailedCall{errno, "ftruncate"};
    return {};
  });
}

PAWL_PUBLIC int pawl_stats(const void* addr, struct pawl_statistics* statistics) {
  return finish([&]() -> Status {
    if (statistics == nullptr) return invalid("statistics must not be NULL");
    const auto mapping = pawl::open_mappings::find(addr);
    if (mapping == nullptr) return not_mapped();
    PAWL_TRY(mapping->in_own_process());
    pawl::MappingStatistics counted;
    mapping->statistics(counted);
    *statistics = counted;
    return {};
  });
}

PAWL_PUBLIC long pawl_recover(const char* path) {
  long records = -1;
  finish([&]() -> Status {
    if (path == nullptr) return invalid("path must not be NULL");
    auto medium = pawl::open_block_medium(path, false);
    if (!medium.ok()) return medium.status();
    const pawl::FileTurn turn(pawl::FileTurn::To::open_or_close, *medium.value());
    auto replayed = pawl::recover(*medium.value());
    if (!replayed.ok()) return replayed.status();
    records = static_cast<long>(replayed.value());
    return {};
  });
  return records;
}

PAWL_PUBLIC const char* pawl_last_error(void) { return pawl::last_error_text(); }

PAWL_PUBLIC int pawl_last_error_code(void) { return pawl::last_error_code(); }

}  // extern "C"
