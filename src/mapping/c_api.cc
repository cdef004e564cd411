// The C border: POSIX arguments in, errno and last-error text out.  No exception passes it.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>

#include "mapping/border.h"
#include "mapping/last_error.h"
#include "mapping/mapping.h"
#include "mapping/open_mappings.h"
#include "mapping/statistics.h"
#include "medium/block_medium.h"
#include "medium/open_medium.h"
#include "pawl/pawl.h"
#include "track/kernel_stores.h"

namespace {

using pawl::finish;
using pawl::invalid;
using pawl::Mapping;
using pawl::Options;
using pawl::Status;
using pawl::Window;

Status not_mapped() {
  return Status::failure(
      ENOMEM,
      "the address is in no atomic mapping of this process (was the file mapped with pawl_mmap?)");
}

// A program that maps atomically gets the wrappers by which the fault tracker sees what the kernel
// stores, from an archive too.  The preload face has its own for read and its kin.
void link_kernel_stores() {
#ifndef PAWL_PRELOAD_FACE
  pawl::link_kernel_stores_io();
#endif
  pawl::link_kernel_stores_other();
}

Status map_atomic(void* address, std::size_t length, int protection, int flags, int descriptor,
                  off_t offset, const pawl_options* given, const void* caller, void** result) {
  constexpr int kUnderstood =
      MAP_ATOMIC | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE | MAP_NORESERVE;
  if ((flags & MAP_ATOMIC) != MAP_ATOMIC) return invalid("flags must contain MAP_ATOMIC");
  if ((flags & ~kUnderstood) != 0)
    return Status::failure(
        EOPNOTSUPP,
        "flags contain what an atomic mapping cannot honour; it takes MAP_ATOMIC with MAP_FIXED, "
        "MAP_FIXED_NOREPLACE, MAP_POPULATE and MAP_NORESERVE");
  if (length == 0) return invalid("a mapping of 0 bytes cannot be");
  if (offset < 0 || static_cast<std::uint64_t>(offset) % pawl::kPageBytes != 0)
    return invalid("the offset must be a multiple of the page size (4096)");
  if (reinterpret_cast<std::uintptr_t>(address) % pawl::kPageBytes != 0 &&
      (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0)
    return invalid("a fixed address must be a multiple of the page size (4096)");
  if (length > std::size_t{1} << 47)
    return Status::failure(
        ENOMEM, "there is no address space for a mapping of " + std::to_string(length) + " bytes");
  link_kernel_stores();
  Options options;
  if (given != nullptr) {
    auto understood = Options::from_public(*given);
    if (!understood.ok()) return understood.status();
    options = understood.value();
  } else {
    auto environment = Options::from_environment();
    if (!environment.ok()) return environment.status();
    options = environment.value();
  }
  options.mapped_by = caller;
  auto medium = pawl::open_medium(descriptor, options.medium);
  if (!medium.ok()) return medium.status();
  auto mapping = Mapping::open(std::move(medium.value()), options);
  if (!mapping.ok()) return mapping.status();
  const auto close_after = [&](const Status& status) {
    [[maybe_unused]] const Status ignored = mapping.value()->close();
    return status;
  };
  auto at = mapping.value()->map_window(address, pawl::round_up(length, pawl::kPageBytes),
                                        protection, flags & (MAP_FIXED | MAP_FIXED_NOREPLACE),
                                        static_cast<std::uint64_t>(offset));
  if (!at.ok()) return close_after(at.status());
  const Window window = *mapping.value()->window();
  std::shared_ptr<Mapping> shared = std::move(mapping.value());
  if (const Status added = pawl::open_mappings::add(shared, window); !added.ok()) {
    [[maybe_unused]] const Status ignored = shared->close();
    return added;
  }
  if ((flags & MAP_POPULATE) != 0) ::madvise(window.address, window.length, MADV_POPULATE_READ);
  *result = at.value();
  return {};
}

// `caller` is the program's code that asked.
void* map_or_fail(void* address, std::size_t length, int protection, int flags, int descriptor,
                  off_t offset, const pawl_options* options, const void* caller) {
  void* result = MAP_FAILED;
  finish([&] {
    return map_atomic(address, length, protection, flags, descriptor, offset, options, caller,
                      &result);
  });
  return result;
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
  return finish([&]() -> Status {
    const auto mapping = pawl::open_mappings::find(addr);
    if (mapping == nullptr) return not_mapped();
    switch (flags) {
      case MS_SYNC:
        return mapping->commit(addr, length);
      case MS_ASYNC:
        return mapping->commit_async(addr, length);
      case MS_INVALIDATE:
        return mapping->roll_back(addr, length);
      default:
        return invalid("flags must be one of MS_SYNC, MS_ASYNC and MS_INVALIDATE");
    }
  });
}

PAWL_PUBLIC int pawl_wait(void* addr) {
  return finish([&]() -> Status {
    const auto mapping = pawl::open_mappings::find(addr);
    return mapping == nullptr ? not_mapped() : mapping->wait();
  });
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
    const auto mapping = pawl::open_mappings::remove(addr);
    if (mapping == nullptr) return not_mapped();  // another thread was first
    return mapping->close();
  });
}

PAWL_PUBLIC int pawl_ftruncate(int fd, off_t length) {
  return finish([&]() -> Status {
    if (length < 0) return invalid("a file cannot have a negative size");
    const int access = ::fcntl(fd, F_GETFL);
    if (access >= 0 && (access & O_ACCMODE) == O_RDONLY)
      return invalid("the fd is not open for writing");
    if (const auto mapping = pawl::open_mappings::find_file(fd))
      return mapping->truncate(static_cast<std::uint64_t>(length));
    if (::ftruncate(fd, length) != 0) return Status::from_errno(errno, "ftruncate");
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
    auto replayed = pawl::recover(*medium.value());
    if (!replayed.ok()) return replayed.status();
    records = static_cast<long>(replayed.value());
    return {};
  });
  return records;
}

PAWL_PUBLIC const char* pawl_last_error(void) { return pawl::last_error_text(); }

}  // extern "C"
