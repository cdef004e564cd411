// The allocator that puts C++ containers into a persistent heap, and the memory resource that does
// so for those of std::pmr.  Included by pawl/heap.hpp.
#ifndef PAWL_ALLOCATOR_HPP
#define PAWL_ALLOCATOR_HPP

#include <pawl/heap.h>
#include <pawl/construction.hpp>
#include <pawl/error.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>
#include <type_traits>

namespace pawl {

class heap;

namespace detail {

inline constexpr std::size_t kAlignmentOfMalloc = 16;
inline constexpr std::size_t kResourceBytes = 64;  // of pawl_heap_resource_place

// The open heap whose place it is; null when that is closed, though another may have its addresses
// by now.
inline pawl_heap* heap_at(const void* place) noexcept {
  pawl_heap* const heap = pawl_heap_of(place);
  return heap != nullptr && pawl_heap_resource_place(heap) == place ? heap : nullptr;
}

// `place` is pawl_heap_resource_place's, by which a heap is known in every run.
inline void* allocate(const void* place, std::size_t size_bytes, std::size_t alignment) {
  if (place == nullptr) {
    throw error(ENXIO, PAWL_ERROR_NO_HEAP,
                "this container was made while no heap was open, as static ones are, or with a "
                "pawl::heap that was closed or moved from: make it after its heap is open, or give "
                "it the heap");
  }
  pawl_heap* const heap = heap_at(place);
  if (heap == nullptr)
    throw error(ENXIO, PAWL_ERROR_NO_HEAP, "the heap of this container is closed");
  void* const block = alignment <= kAlignmentOfMalloc
                          ? pawl_heap_malloc(heap, size_bytes)
                          : pawl_heap_aligned_alloc(heap, alignment, size_bytes);
  if (block == nullptr) throw_last_error();
  return block;
}

// Cannot fail.  A block that is none is remembered by the heap, whose next sync fails with EUCLEAN;
// the blocks of a heap that is closed are gone with it.
inline void deallocate(const void* place, void* block) noexcept {
  if (pawl_heap* const heap = heap_at(place)) (void)pawl_heap_free(heap, block);
}

// Lives in the heap's file, so that std::pmr containers there find it in every run.  It has virtual
// functions, so it is made anew in each process: see place_in.
class __attribute__((visibility("default"))) resource final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t size_bytes, std::size_t alignment) override {
    return detail::allocate(this, size_bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override {
    detail::deallocate(this, block);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

// The heap's place.  Its resource is this process's from then on, whoever opened the heap.
inline void* place_in(pawl_heap* heap) noexcept {
  void* const place = pawl_heap_resource_place(heap);
  if (place == nullptr) return nullptr;
  const resource of_this_process;
  static_assert(sizeof of_this_process <= kResourceBytes);
  // All that a resource has is its virtual table.
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  if (std::memcmp(place, static_cast<const void*>(&of_this_process), sizeof of_this_process) != 0)
    ::new (place) resource;
  return place;
}

// Of the heap that is under construction in this thread, else of the default heap; null for none.
inline void* place_by_default() noexcept {
  if (scope_place != nullptr) return scope_place;
  pawl_heap* const heap = pawl_heap_default();
  return heap == nullptr ? nullptr : place_in(heap);
}

}  // namespace detail

// Allocates from one heap.  Made from nothing, it is the default heap's (pawl_heap_default), or
// inside of a constructor that runs in a heap, that heap's.
//
// Containers keep to their heap: a container in another heap, and what is moved or assigned into
// it, is made of elements in that heap, and elements that take an allocator get their container's;
// new ones do through pairs, tuples and optionals too.  No allocator sees what is assigned to an
// optional, a variant or a class of the program's that is there already, as insert() in the middle
// and `a = b` do as well: give it, emplace(value, container.get_allocator()), or erase first.
// Exchanging the memory of two containers that belong to different heaps with their member swap()
// is refused by std::terminate; plain swap(a, b) moves the elements.
template <class T>
class allocator {
 public:
  using value_type = T;
  using is_always_equal = std::false_type;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::false_type;
  // So that the containers' member swap() comes to swap() below, which can tell.
  using propagate_on_container_swap = std::true_type;

  allocator() noexcept : place_(detail::place_by_default()) {}
  allocator(const heap& of) noexcept;  // NOLINT(google-explicit-constructor): as std::pmr's
  explicit allocator(pawl_heap* of) noexcept : place_(detail::place_in(of)) {}
  template <class U>
  allocator(const allocator<U>& other) noexcept  // NOLINT(google-explicit-constructor)
      : place_(other.place()) {}

  // NOLINTBEGIN(bugprone-sizeof-expression): T may well be a pointer
  T* allocate(std::size_t count) {
    detail::check_storable<T>();
    if (count > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T))
      throw std::bad_array_new_length();
    return static_cast<T*>(detail::allocate(place_, count * sizeof(T), alignof(T)));
  }
  // NOLINTEND(bugprone-sizeof-expression)
  void deallocate(T* block, std::size_t) noexcept {
    // Containers may point to const, but they do not allocate it.
    detail::deallocate(place_, block);
  }

  // A copy that is made while something is constructed in a heap is that heap's, also where a class
  // takes no allocator.
  allocator select_on_container_copy_construction() const noexcept {
    allocator chosen = *this;
    if (detail::scope_place != nullptr) chosen.place_ = detail::scope_place;
    return chosen;
  }

  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    detail::construct(*this, at, std::forward<Arguments>(arguments)...);
  }

  // So that a std::pmr container in one of pawl's is made in the same heap.
  template <class U>
  operator std::pmr::polymorphic_allocator<U>() const {  // NOLINT(google-explicit-constructor)
    return place_ == nullptr ? std::pmr::null_memory_resource()
                             : static_cast<detail::resource*>(place_);
  }

  // The heap, while it is open; null otherwise, and for a container that was made without one.
  pawl_heap* handle() const noexcept {
    return place_ == nullptr ? nullptr : detail::heap_at(place_);
  }
  void* place() const noexcept { return place_; }

  // The containers' member swap() that calls it is noexcept, and ends the process with this text.
  // NOLINTNEXTLINE(bugprone-exception-escape)
  friend void swap(allocator& a, allocator& b) {
    if (a == b) return;
    throw error(EXDEV, PAWL_ERROR_DIFFERENT_HEAPS,
                "swap() of containers of different heaps: each would point into the other's file; "
                "use swap(a, b) or move their elements");
  }

 private:
  void* place_;
};

template <class T, class U>
bool operator==(const allocator<T>& a, const allocator<U>& b) noexcept {
  return a.place() == b.place();
}
template <class T, class U>
bool operator!=(const allocator<T>& a, const allocator<U>& b) noexcept {
  return !(a == b);
}

}  // namespace pawl

#endif
