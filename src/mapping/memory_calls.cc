#include "mapping/memory_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mapping/border.h"
#include "mapping/open_mappings.h"
#include "medium/memory_functions.h"
#include "medium/readable_memory.h"

namespace pawl::memory_calls {
namespace {

using open_mappings::may_have_windows_in;
using open_mappings::Piece;
using open_mappings::pieces_of;

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which the headers of Debian 12 may lack

bool is_ours(const Piece& piece) {
  return piece.mapping != nullptr && piece.mapping->in_own_process().ok();
}

const std::string& path_of(const Piece& piece) { return piece.mapping->medium().path(); }

Status outcome_of(int result, const char* call) {
  return result == 0 ? Status{} : FailedCall{errno, call};
}

// What fails here ends the call, as it does in the kernel: the pieces before it have it done.
template <class Ours, class Kernel>
Status for_pieces(void* address, std::size_t length, Ours ours, Kernel kernel) {
  const AddressRange range = range_of(address, length);
  if (address != range.start()) return invalid("the address is not a multiple of the page size");
  for (const Piece& piece : pieces_of(range)) {
    PAWL_TRY(is_ours(piece) ? ours(piece) : kernel(piece.range.start(), piece.range.bytes()));
  }
  return {};
}

// Whether all windows in the range can be unmapped with it, each whole.
Status check_whole(const AddressRange& range, const std::vector<Piece>& pieces, int error_number) {
  for (const Piece& piece : pieces) {
    if (!is_ours(piece)) continue;
    if (piece.is_heap) {
      return Status::failure(error_number, PAWL_ERROR_STILL_OPEN,
                             "the memory is that of the heap " + path_of(piece) +
                                 "; close the heap with pawl_heap_close()");
    }
    if (!range.contains(piece.window)) {
      return Status::failure(
          error_number,
          error_number == EBUSY ? PAWL_ERROR_ADDRESS_TAKEN : PAWL_ERROR_INVALID_ARGUMENT,
          "the range holds a part of the atomic mapping of " + path_of(piece) +
              ", which is unmapped whole; unmap all of it first");
    }
  }
  return {};
}

std::vector<Piece> windows_in(const AddressRange& range) {
  return may_have_windows_in(range) ? pieces_of(range) : std::vector<Piece>{};
}

// Address space that no other thread is given.
void* reserve(void* address, std::size_t length, int flags) {
  constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  return memory::map(address, length, PROT_NONE, kReserve | flags, -1, 0);
}

Status unmap_whole(const Piece& piece) {
  return open_mappings::close(*piece.mapping, piece.window.start()).status();
}

// A length of 0 asks mremap() for a second mapping of the same memory.
AddressRange source_of(void* address, std::size_t length) {
  return range_of(address, std::max<std::size_t>(length, 1));
}

Status unmap_windows(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (is_ours(piece)) PAWL_TRY(unmap_whole(piece));
  }
  return {};
}

// The windows' memory stays where it is; unless nothing will come in its place, for msync() of what
// is no mapping any more must not answer 0.
Status unmap_spared(const AddressRange& range, const std::vector<Piece>& pieces) {
  Status status;
  {
    const memory::Spared spared(range.start(), range.bytes());
    status = unmap_windows(pieces);
  }
  if (status.ok()) return status;
  for (const Piece& piece : pieces) {
    const bool is_gone = is_ours(piece) && !open_mappings::find(piece.window.start());
    if (is_gone) memory::unmap(piece.window.start(), piece.window.bytes());
  }
  return status;
}

struct OtherWindows {
  std::atomic<Status (*)(const AddressRange&)> check{nullptr};
  std::atomic<Status (*)(const AddressRange&)> make_way{nullptr};
};
OtherWindows others;

template <class Call>
void* map_or_fail(Call call) {
  void* result = MAP_FAILED;
  finish([&] { return call(result); });
  return result;
}

Status map_result(void* result, const char* call) {
  return result == MAP_FAILED ? FailedCall{errno, call} : Status{};
}

Status remap_window(const Piece& piece, const AddressRange& range, std::size_t new_length,
                    int flags, void* new_address, void*& result) {
  const bool is_fixed = (flags & MREMAP_FIXED) != 0;
  const bool may_move = (flags & MREMAP_MAYMOVE) != 0;
  const bool is_understood =
      (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) == 0 && (may_move || !is_fixed);
  if (piece.is_heap || range.low != piece.window.low || range.high != piece.window.high ||
      new_length == 0 || !is_understood) {
    return invalid("the atomic mapping of " + path_of(piece) +
                   " is moved and resized as a whole, by MREMAP_MAYMOVE with or without "
                   "MREMAP_FIXED, and a heap's not at all");
  }
  if (is_fixed) {
    const AddressRange target = range_of(new_address, new_length);
    if (!target.intersect(range).empty())
      return invalid("the old and the new place of a mapping overlap");
    // To the length that it has: says whether it can be moved, and changes nothing.
    memory::LeftPlace nothing;
    PAWL_TRY(piece.mapping->remap_window(range.bytes(), false, nullptr, nothing).status());
    PAWL_TRY(check_way(target));
    PAWL_TRY(make_way(target));
  }
  memory::LeftPlace left;
  auto moved = piece.mapping->remap_window(round_up(new_length, kPageBytes), may_move,
                                           is_fixed ? new_address : nullptr, left);
  if (const auto window = piece.mapping->window()) open_mappings::move(*piece.mapping, *window);
  if (!moved.ok()) {
    if (is_fixed) leave_nothing(range_of(new_address, new_length));
    return moved.status();
  }
  result = moved.value();
  return {};
}

// A mapping of the kernel's, moved over windows.
Status move_over(void* ready, std::size_t length, const AddressRange& target, void*& result) {
  PAWL_TRY(make_way(target));
  result = memory::remap(ready, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, target.start());
  const Status status = map_result(result, "mremap");
  if (!status.ok()) leave_nothing(target);
  return status;
}

// The memory at `ready` goes back to where it was, unless another thread was given that place.
void put_back(void* ready, std::size_t new_length, void* address, std::size_t length, int flags) {
  if (length == 0) {
    memory::unmap(ready, new_length);
    return;
  }
  const bool is_free = (flags & MREMAP_DONTUNMAP) == 0;
  if (is_free && reserve(address, length, MAP_FIXED_NOREPLACE) == MAP_FAILED) return;
  memory::remap(ready, new_length, length, MREMAP_MAYMOVE | MREMAP_FIXED, address);
}

// What the kernel refuses leaves the windows as they are, so it is asked for the move to another
// place first.
Status remap_kernel_over(void* address, std::size_t length, std::size_t new_length, int flags,
                         const AddressRange& target, void*& result) {
  PAWL_TRY(check_way(target));
  void* const reserved = reserve(nullptr, target.bytes(), 0);
  PAWL_TRY(map_result(reserved, "mmap"));
  void* const ready = memory::remap(address, length, new_length, flags, reserved);
  if (ready == MAP_FAILED) {
    const Status refused = map_result(ready, "mremap");
    memory::unmap(reserved, target.bytes());
    return refused;
  }
  const Status moved = move_over(ready, new_length, target, result);
  if (!moved.ok()) put_back(ready, new_length, address, length, flags);
  return moved;
}

}  // namespace

bool is_harmless(int advice) {
  return advice == MADV_WILLNEED || advice == MADV_COLD || advice == MADV_PAGEOUT;
}

void also_make_way(Status (*check)(const AddressRange&), Status (*make_way)(const AddressRange&)) {
  others.check.store(check);
  others.make_way.store(make_way);
}

Status check_way(const AddressRange& range) {
  void* const probe = reserve(range.start(), range.bytes(), MAP_FIXED_NOREPLACE);
  if (probe == MAP_FAILED && errno != EEXIST) return FailedCall{errno, "mmap"};
  if (probe != MAP_FAILED) memory::unmap(probe, range.bytes());
  if (const auto check_others = others.check.load()) PAWL_TRY(check_others(range));
  return check_whole(range, windows_in(range), EBUSY);
}

Status make_way(const AddressRange& range) {
  if (const auto make_other_way = others.make_way.load()) PAWL_TRY(make_other_way(range));
  return unmap_spared(range, windows_in(range));
}

Status unmap_copy(const Mapping& mapping, const AddressRange& window) {
  for (const Piece& piece : pieces_of(window)) {
    if (piece.mapping.get() != &mapping) continue;
    PAWL_TRY(outcome_of(memory::unmap(piece.range.start(), piece.range.bytes()), "munmap"));
  }
  return {};
}

void leave_nothing(const AddressRange& range) { memory::unmap(range.start(), range.bytes()); }

void* map(void* address, std::size_t length, int protection, int flags, int descriptor,
          off_t offset) {
  const bool replaces = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED;
  const AddressRange range = range_of(address, length);
  if (!replaces || !may_have_windows_in(range))
    return memory::map(address, length, protection, flags, descriptor, offset);
  // Made elsewhere first: what the kernel refuses leaves the windows as they are.
  return map_or_fail([&](void*& result) -> Status {
    result =
        memory::map(address, length, protection, flags | MAP_FIXED_NOREPLACE, descriptor, offset);
    if (result != MAP_FAILED || errno != EEXIST) return map_result(result, "mmap");
    PAWL_TRY(check_way(range));
    void* const ready =
        memory::map(nullptr, length, protection, flags & ~MAP_FIXED, descriptor, offset);
    PAWL_TRY(map_result(ready, "mmap"));
    const Status moved = move_over(ready, length, range, result);
    if (!moved.ok()) memory::unmap(ready, length);
    return moved;
  });
}

int unmap(void* address, std::size_t length) {
  const AddressRange range = range_of(address, length);
  if (!may_have_windows_in(range)) return memory::unmap(address, length);
  return finish([&]() -> Status {
    PAWL_TRY(check_whole(range, pieces_of(range), EINVAL));
    return for_pieces(address, length, unmap_whole, [](void* at, std::size_t bytes) {
      return outcome_of(memory::unmap(at, bytes), "munmap");
    });
  });
}

int protect(void* address, std::size_t length, int protection) {
  if (!may_have_windows_in(range_of(address, length)))
    return memory::protect(address, length, protection);
  return finish([&] {
    return for_pieces(
        address, length,
        [&](const Piece& piece) {
          return piece.mapping->protect_window(piece.range.start(), piece.range.bytes(),
                                               protection);
        },
        [&](void* at, std::size_t bytes) {
          return outcome_of(memory::protect(at, bytes, protection), "mprotect");
        });
  });
}

int protect_with_key(void* address, std::size_t length, int protection, int key) {
  if (!may_have_windows_in(range_of(address, length)))
    return memory::protect_with_key(address, length, protection, key);
  if (key == -1) return protect(address, length, protection);
  return finish([&] {
    return for_pieces(
        address, length,
        [&](const Piece& piece) {
          return Status::failure(
              ENOTSUP, "the atomic mapping of " + path_of(piece) + " takes no protection key");
        },
        [&](void* at, std::size_t bytes) {
          return outcome_of(memory::protect_with_key(at, bytes, protection, key), "pkey_mprotect");
        });
  });
}

int advise(void* address, std::size_t length, int advice) {
  if (!may_have_windows_in(range_of(address, length)))
    return memory::advise(address, length, advice);
  return finish([&] {
    return for_pieces(
        address, length,
        [&](const Piece& piece) {
          return piece.mapping->advise(piece.range.start(), piece.range.bytes(), advice);
        },
        [&](void* at, std::size_t bytes) {
          return outcome_of(memory::advise(at, bytes, advice), "madvise");
        });
  });
}

// By the numbers of the same /proc, which may be that of another PID namespace.
bool is_other_process(int process) {
  char self[24];
  const ssize_t self_length = ::readlink("/proc/self", self, sizeof self - 1);
  if (self_length <= 0) return false;
  self[self_length] = '\0';
  char path[40];
  std::snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", process);
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  char text[512];
  const ssize_t length = ::read(descriptor, text, sizeof text - 1);
  ::close(descriptor);
  text[std::max<ssize_t>(length, 0)] = '\0';
  const char* const line = std::strstr(text, "\nPid:");
  return line != nullptr &&
         std::strtol(line + std::strlen("\nPid:"), nullptr, 10) != std::strtol(self, nullptr, 10);
}

std::size_t vectors_for_advice(const iovec* vectors, std::size_t count) {
  const std::size_t taken = static_cast<std::uint32_t>(count);
  return taken <= IOV_MAX && are_readable(vectors, taken) ? taken : 0;
}

ssize_t advise_process(int process, const iovec* vectors, std::size_t count, int advice,
                       unsigned flags) {
  const auto holds_a_window = [](const iovec& vector) {
    return may_have_windows_in(range_of(vector.iov_base, vector.iov_len));
  };
  const std::size_t taken = vectors_for_advice(vectors, count);
  if (is_harmless(advice) || std::none_of(vectors, vectors + taken, holds_a_window) ||
      is_other_process(process))
    return memory::advise_process(process, vectors, count, advice, flags);
  return finish([&] {
    return invalid(
        "process_madvise() of what may be an atomic mapping; give this advice with "
        "madvise()");
  });
}

Status synchronise(Mapping& mapping, void* address, std::size_t length, int flags) {
  switch (flags) {
    case MS_SYNC:
      return mapping.commit(address, length);
    case MS_ASYNC:
      return mapping.commit_async(address, length);
    case MS_INVALIDATE:
      return mapping.roll_back(address, length);
    default:
      return invalid("flags must be one of MS_SYNC, MS_ASYNC and MS_INVALIDATE");
  }
}

int synchronise(void* address, std::size_t length, int flags) {
  if (!may_have_windows_in(range_of(address, length)))
    return memory::synchronise(address, length, flags);
  return finish([&]() -> Status {
    const AddressRange range = range_of(address, length);
    if (address != range.start()) return invalid("the address is not a multiple of the page size");
    for (const Piece& piece : pieces_of(range)) {
      if (piece.mapping == nullptr) {
        PAWL_TRY(outcome_of(memory::synchronise(piece.range.start(), piece.range.bytes(), flags),
                            "msync"));
      } else if (piece.is_heap) {
        return invalid("the memory is that of the heap " + path_of(piece) +
                       ", which pawl_heap_sync() commits");
      } else {
        PAWL_TRY(synchronise(*piece.mapping, piece.range.start(), piece.range.bytes(), flags));
      }
    }
    return {};
  });
}

void* remap(void* address, std::size_t length, std::size_t new_length, int flags,
            void* new_address) {
  const bool is_fixed = (flags & MREMAP_FIXED) != 0;
  if (!may_have_windows_in(source_of(address, length)) &&
      !(is_fixed && may_have_windows_in(range_of(new_address, new_length))))
    return memory::remap(address, length, new_length, flags, new_address);
  return remap_over(address, length, new_length, flags, new_address);
}

void* remap_over(void* address, std::size_t length, std::size_t new_length, int flags,
                 void* new_address) {
  return map_or_fail([&](void*& result) -> Status {
    const AddressRange range = source_of(address, length);
    const auto pieces = pieces_of(range);
    const auto ours = std::find_if(pieces.begin(), pieces.end(), is_ours);
    if (ours != pieces.end() && pieces.size() != 1)
      return invalid("an atomic mapping and its neighbours are not moved at once");
    if ((flags & MREMAP_FIXED) != 0 && range_of(new_address, 1).start() != new_address)
      return invalid("the new address is not a multiple of the page size");
    if (ours != pieces.end())
      return remap_window(*ours, range, new_length, flags, new_address, result);
    const AddressRange target = range_of(new_address, new_length);
    if ((flags & MREMAP_FIXED) != 0 && target.intersect(range).empty() && !target.empty())
      return remap_kernel_over(address, length, new_length, flags, target, result);
    result = memory::remap(address, length, new_length, flags, new_address);
    return map_result(result, "mremap");
  });
}

int lock(const void* address, std::size_t length, unsigned flags) {
  const AddressRange range = range_of(address, length);
  if (!may_have_windows_in(range)) return memory::lock(address, length, flags);
  return finish([&] {
    return for_pieces(
        range.start(), range.bytes(),
        [&](const Piece& piece) {
          return piece.mapping->lock_memory(piece.range.start(), piece.range.bytes(), flags);
        },
        [&](void* part, std::size_t bytes) {
          return outcome_of(memory::lock(part, bytes, flags), "mlock");
        });
  });
}

// The kernel reads in what it can, and says nothing of the rest.
void ready_for_lock(Mapping& mapping, const AddressRange& range, bool read_in) {
  (void)mapping.clear_markers(range.start(), range.bytes());
  if (read_in) (void)mapping.advise(range.start(), range.bytes(), kPopulateRead);
}

int lock_all(int flags, void (*ready_others)(bool read_in)) {
  const AddressRange everything{0, ~std::uintptr_t{0}};
  const bool has_windows = ready_others != nullptr || may_have_windows_in(everything);
  if ((flags & MCL_CURRENT) == 0 || !has_windows) return memory::lock_all(flags);
  return finish([&]() -> Status {
    const bool reads_in = (flags & MCL_ONFAULT) == 0;
    const auto ready = [&](bool read_in) {
      for (const Piece& piece : pieces_of(everything)) {
        if (is_ours(piece)) ready_for_lock(*piece.mapping, piece.range, read_in);
      }
      if (ready_others != nullptr) ready_others(read_in);
    };
    ready(false);
    PAWL_TRY(outcome_of(memory::lock_all(flags | MCL_ONFAULT), "mlockall"));
    ready(reads_in);
    // Pages that are there and locked are there when the kernel reads in all that is not.
    return reads_in ? outcome_of(memory::lock_all(flags), "mlockall") : Status{};
  });
}

void* attach_shared(int id, const void* address, int flags) {
  shmid_ds segment{};
  if ((flags & SHM_REMAP) == 0 || shmctl(id, IPC_STAT, &segment) != 0)
    return memory::attach_shared(id, address, flags);
  const AddressRange range = range_of(address, segment.shm_segsz);
  if (!may_have_windows_in(range)) return memory::attach_shared(id, address, flags);
  return map_or_fail([&](void*& result) -> Status {
    const auto pieces = pieces_of(range);
    const auto ours = std::find_if(pieces.begin(), pieces.end(), is_ours);
    if (ours != pieces.end()) {
      return Status::failure(
          EBUSY, PAWL_ERROR_ADDRESS_TAKEN,
          "SHM_REMAP would cover the atomic mapping of " + path_of(*ours) + "; unmap that first");
    }
    result = memory::attach_shared(id, address, flags);
    return map_result(result, "shmat");
  });
}

}  // namespace pawl::memory_calls
