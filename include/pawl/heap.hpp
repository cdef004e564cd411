// The C++ face of the persistent heap: containers that survive the process.  See pawl/heap.h for
// what a heap is and what it demands.
//
//   pawl::heap heap("words.heap");
//   auto& words = heap.root<pawl::map<pawl::string, long>>();
//   ++words["pawl"];
//   heap.sync();
//
// What lives in the heap must be reachable from a root, must have no virtual functions, and must
// hold no pointers out of the heap; what the compiler can see of that it refuses, and verify()
// finds the rest.  Failures are thrown as pawl::error, want of memory as std::bad_alloc.
//
// What is in the heap may be taken away under a program that holds on to it: references to what was
// made since the last sync are dead after rollback(), all are after the heap was closed, and
// containers elsewhere with memory in the heap (a local pawl::string) must not be used after
// either.
//
// Header only, over the C functions; C++17 and later.
#ifndef PAWL_HEAP_HPP
#define PAWL_HEAP_HPP

#include <pawl/heap.h>
#include <pawl/allocator.hpp>
#include <pawl/containers.hpp>
#include <pawl/error.hpp>
#include <pawl/type_tag.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace pawl {

struct heap_options {
  std::uint64_t size_bytes_max = 0;       // 0: the default, or what the heap records
  std::uint64_t address = 0;              // of a new heap; 0: drawn at random
  bool verify = false;                    // before every sync; also PAWL_HEAP_VERIFY=1
  const pawl_options* mapping = nullptr;  // null: pawl_options_init's
};

// An open heap.  It may be used by several threads at once, but opened, moved and closed only by
// one, and while no other uses it.
class heap {
 public:
  // Takes the texts of faults, and must not use the heap.
  using reporter = std::function<void(std::string_view)>;

  // Opens the heap at path, or makes one; see pawl_heap_open.
  explicit heap(const std::filesystem::path& path, const heap_options& options = {})
      : handle_(open(path.c_str(), options)) {
    (void)detail::place_in(handle_);
  }
  heap(heap&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  heap& operator=(heap&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  // Closes the heap; what was not synced is discarded.
  ~heap() {
    if (handle_ != nullptr) (void)pawl_heap_close(handle_);
  }
  // The same, and throws when pawl_heap_close fails.
  void close() {
    if (handle_ != nullptr) succeed(pawl_heap_close(std::exchange(handle_, nullptr)));
  }

  // Makes everything since the last sync durable, in one atomic step.
  void sync() { succeed(pawl_heap_sync(handle_)); }
  // Takes everything back to the last sync, the roots too.
  void rollback() { succeed(pawl_heap_rollback(handle_)); }

  // The root, and roots with names (1 to PAWL_HEAP_NAME_MAX bytes): the object of that name, which
  // the first call constructs from the arguments, and whose allocator, if it takes one, is the
  // heap's.  Throws when there is one of another type.  root() is the root with the name "root",
  // and not that of pawl_heap_set_root, which is left to C.
  template <class T, class... Arguments>
  T& root(Arguments&&... arguments) {
    return named<T>(kRootName, std::forward<Arguments>(arguments)...);
  }
  template <class T, class... Arguments>
  T& named(std::string_view name, Arguments&&... arguments) {
    const std::lock_guard<std::recursive_mutex> one_at_a_time(roots_mutex());
    if (T* const found = find<T>(name)) return *found;
    T* const made = make<T>(std::forward<Arguments>(arguments)...);
    if (pawl_heap_set_named_root(handle_, checked(name).c_str(), made, type_tag<T>()) != 0) {
      const int error_number = errno;
      const int condition = pawl_last_error_code();
      const std::string text = pawl_last_error();
      destroy(made);
      throw error(error_number, condition, text);
    }
    return *made;
  }
  // Null when there is none of that name.
  template <class T>
  T* find(std::string_view name) const {
    const std::string text = checked(name);
    std::uint64_t tag = 0;
    void* const found = pawl_heap_named_root(handle_, text.c_str(), &tag);
    if (found == nullptr) {
      if (errno != ENOENT) detail::throw_last_error();
      return nullptr;
    }
    if (tag != type_tag<T>()) {
      throw error(
          EINVAL, PAWL_ERROR_ROOT_OF_OTHER_TYPE,
          "the root \"" + text + "\" was made as another type than " + detail::type_name<T>());
    }
    return static_cast<T*>(found);
  }
  // Destroys the object of that name; false when there is none.
  template <class T>
  bool remove(std::string_view name) {
    const std::lock_guard<std::recursive_mutex> one_at_a_time(roots_mutex());
    T* const found = find<T>(name);
    if (found == nullptr) return false;
    succeed(pawl_heap_set_named_root(handle_, checked(name).c_str(), nullptr, 0));
    destroy(found);
    return true;
  }

  // Constructs a T in the heap, as a root is.  Something reachable must come to point to it.
  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) {
    static_assert(!std::is_array_v<T>, "take std::array");
    allocator<T> memory(*this);
    T* const made = memory.allocate(1);
    try {
      memory.construct(made, std::forward<Arguments>(arguments)...);
    } catch (...) {
      memory.deallocate(made, 1);
      throw;
    }
    return made;
  }
  template <class T>
  void destroy(T* made) {
    if (made == nullptr) return;
    made->~T();
    succeed(pawl_heap_free(handle_, made));
  }

  // The number of faults in the heap's bookkeeping, and of words that point out of the heap; see
  // pawl_heap_check and pawl_heap_verify.
  long check(const reporter& report = nullptr) const { return look(pawl_heap_check, report); }
  long verify(const reporter& report = nullptr) const { return look(pawl_heap_verify, report); }

  pawl_heap_information info() const {
    pawl_heap_information information{};
    succeed(pawl_heap_info(handle_, &information));
    return information;
  }
  pawl_statistics statistics() const {
    pawl_statistics counters{};
    succeed(pawl_heap_stats(handle_, &counters));
    return counters;
  }

  // For containers of std::pmr.  It lies in the heap, at the same address in every run.
  std::pmr::memory_resource* resource() const noexcept {
    return static_cast<detail::resource*>(pawl_heap_resource_place(handle_));
  }
  // For the C functions; null after close() or a move.
  pawl_heap* handle() const noexcept { return handle_; }

 private:
  static constexpr std::string_view kRootName = "root";

  static pawl_heap* open(const char* path, const heap_options& options) {
    pawl_heap_options of_c;
    succeed(pawl_heap_options_init(&of_c));
    of_c.size_bytes_max = options.size_bytes_max;
    of_c.address = options.address;
    of_c.layout = detail::kLayout;
    if (options.verify) of_c.verify = 1;
    if (options.mapping != nullptr) of_c.mapping = *options.mapping;
    pawl_heap* const opened = pawl_heap_open(path, &of_c);
    if (opened == nullptr) detail::throw_last_error();
    return opened;
  }

  static void succeed(int result) {
    if (result != 0) detail::throw_last_error();
  }

  // Finding a root and making it are one step.  What a root's constructor makes may be roots.
  // One for all libraries of the program, even those that hide their names.
  __attribute__((visibility("default"))) static std::recursive_mutex& roots_mutex() {
    static std::recursive_mutex mutex;
    return mutex;
  }

  static std::string checked(std::string_view name) {
    if (name.find('\0') != std::string_view::npos)
      throw error(EINVAL, PAWL_ERROR_INVALID_ARGUMENT, "the name of a root holds no zero bytes");
    return std::string(name);
  }

  using looker = long(pawl_heap*, pawl_heap_report*, void*);
  long look(looker* at, const reporter& report) const {
    // No exception may pass through the C functions: the first one waits until they are done.
    struct telling {
      const reporter& report;
      std::exception_ptr failure;
    } told{report, nullptr};
    const long faults = at(
        handle_,
        [](void* context, const char* text) {
          auto& to = *static_cast<telling*>(context);
          if (!to.report || to.failure) return;
          try {
            to.report(text);
          } catch (...) {
            to.failure = std::current_exception();
          }
        },
        &told);
    if (told.failure) std::rethrow_exception(told.failure);
    if (faults < 0) detail::throw_last_error();
    return faults;
  }

  pawl_heap* handle_;
};

template <class T>
allocator<T>::allocator(const heap& of) noexcept : allocator(of.handle()) {}

}  // namespace pawl

#endif
