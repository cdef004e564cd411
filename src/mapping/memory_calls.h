// A program's calls on memory: on the windows of the C API's mappings and of heaps they do what
// they would do to a shared mapping of the file, or are refused; elsewhere they are the kernel's.
//
// Each has the arguments, the results and the errno of the libc function, and for a refusal
// pawl_last_error().  Any thread may call them, a signal handler only on memory that is no
// window's. A forked child's windows are its own copy, and the kernel's; only msync() is refused
// there, as long as they are (medium/inherited_memory.h).
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "mapping/mapping.h"
#include "medium/address_range.h"

struct iovec;

namespace pawl::memory_calls {

// MAP_FIXED: windows that lie wholly within the range are unmapped as by munmap(), once it is sure
// that the kernel maps there; EBUSY where the range holds a part of one, or a heap.
void* map(void* address, std::size_t length, int protection, int flags, int descriptor,
          off_t offset);
// A window is unmapped whole, as by pawl_munmap(); EINVAL for a part of one, and for a heap.
int unmap(void* address, std::size_t length);
int protect(void* address, std::size_t length, int protection);
int protect_with_key(void* address, std::size_t length, int protection, int key);
int advise(void* address, std::size_t length, int advice);
// How many of the vectors process_madvise(2) looks at: it takes the low half of the count.  None
// where it refuses them.
std::size_t vectors_for_advice(const iovec* vectors, std::size_t count);
// Advice that would take stores away is refused: madvise() gives it.
ssize_t advise_process(int process, const iovec* vectors, std::size_t count, int advice,
                       unsigned flags);
// As pawl_msync().
int synchronise(void* address, std::size_t length, int flags);
// A window is moved and resized whole.
void* remap(void* address, std::size_t length, std::size_t new_length, int flags,
            void* new_address);
// The same, where the new place may hold windows that also_make_way() knows.
void* remap_over(void* address, std::size_t length, std::size_t new_length, int flags,
                 void* new_address);
// mlock2(2) and mlockall(2): neither meets a marker of the tracker `scan` (track/tracker.h).
int lock(const void* address, std::size_t length, unsigned flags);
// `ready_others`: called for windows that pieces_of() does not know, before pages are locked, and
// once they are and are to be read in.
int lock_all(int flags, void (*ready_others)(bool read_in) = nullptr);
void* attach_shared(int id, const void* address, int flags);

// Of a window that lock_all() locks.
void ready_for_lock(Mapping& mapping, const AddressRange& range, bool read_in);

// Advice that leaves every page as it is.
bool is_harmless(int advice);
// Whether the descriptor is surely that of another process, to whose addresses no window belongs.
bool is_other_process(int process);

// For a mapping at a fixed address.  First whether there may be one: the windows in its way lie
// wholly in the range, and the kernel, which is asked to keep what is there, says EEXIST only.
Status check_way(const AddressRange& range);
// Then, when the mapping is as good as made, these windows are unmapped.  Their memory stays where
// it is, to be mapped over.
Status make_way(const AddressRange& range);
// Should it fail after all: msync() of what is left of the windows must not answer 0.
void leave_nothing(const AddressRange& range);
// What else is to make way then: the preload library's windows.
void also_make_way(Status (*check)(const AddressRange& range),
                   Status (*make_way)(const AddressRange& range));

// In a child, of a window that it inherited: takes what is left of it away, and touches no file.
Status unmap_copy(const Mapping& mapping, const AddressRange& window);

// pawl_msync() of a mapping that was found by the address.
Status synchronise(Mapping& mapping, void* address, std::size_t length, int flags);

// Defines libc's functions by these: memory_wrappers.cc, which a linker takes from an archive only
// if it is referred to.
void link_wrappers();

}  // namespace pawl::memory_calls
