// The C border of the heap.

#include <fcntl.h>
#include <cerrno>
#include <cstring>

#include "heap/heap.h"
#include "heap/open_heaps.h"
#include "mapping/border.h"
#include "mapping/last_error.h"
#include "mapping/map_atomic.h"
#include "mapping/statistics.h"
#include "medium/environment.h"
#include "medium/open_medium.h"
#include "medium/parked_descriptors.h"
#include "pawl/heap.h"

namespace {

using pawl::FailedCall;
using pawl::finish;
using pawl::Heap;
using pawl::HeapOptions;
using pawl::invalid;
using pawl::Result;
using pawl::Status;

constexpr mode_t kNewFileMode = 0644;
constexpr const char* kVerifyVariable = "PAWL_HEAP_VERIFY";

Result<HeapOptions> understand(const pawl_heap_options* given) {
  HeapOptions options;
  pawl_heap_options defaults;
  if (given == nullptr) {
    if (pawl_heap_options_init(&defaults) != 0) {
      const int error_number = errno;
      return Status::failure(error_number, pawl::last_error_code(), pawl_last_error());
    }
    given = &defaults;
  }
  if (given->struct_size_bytes != sizeof *given)
    return invalid(
        "options were not filled by pawl_heap_options_init, or by one of another "
        "version");
  options.size_bytes_max = given->size_bytes_max;
  options.address = given->address;
  if (given->layout != nullptr) options.layout = given->layout;
  options.verify = given->verify != 0;
  auto mapping = pawl::Options::from_public(given->mapping);
  if (!mapping.ok()) return mapping.status();
  options.mapping = mapping.value();
  PAWL_TRY(pawl::check_tracker(options.mapping));
  PAWL_TRY(options.validate());
  return options;
}

Result<std::unique_ptr<Heap>> open_file(int descriptor, const HeapOptions& options) {
  auto medium = pawl::open_medium(descriptor, options.mapping.medium);
  if (!medium.ok()) return medium.status();
  return Heap::open(std::move(medium.value()), options);
}

// A file that was made for a heap which could not be stays, empty, and is a good start for the next
// try: another process may have begun to make its heap there meanwhile.
Result<std::unique_ptr<Heap>> open_path(const char* path, const HeapOptions& options) {
  const pawl::parked_descriptors::OpenedFile file(path, O_RDWR | O_CREAT, kNewFileMode);
  if (!file.valid()) return FailedCall{errno, std::string("cannot open or create ") + path};
  return open_file(file.get(), options);
}

Status no_heap() { return invalid("heap must not be NULL"); }

// The result's value, or `otherwise` with errno and a text.
template <class Value, class Call>
Value value_or(Value otherwise, Call call) {
  Value value = otherwise;
  finish([&]() -> Status {
    auto result = call();
    if (!result.ok()) return result.status();
    value = static_cast<Value>(result.value());
    return {};
  });
  return value;
}

template <class Value, class Call>
Value of_heap(pawl_heap* heap, Value otherwise, Call call) {
  return value_or<Value>(otherwise, [&]() -> decltype(call(*heap->heap)) {
    if (heap == nullptr) return no_heap();
    return call(*heap->heap);
  });
}

template <class Call>
int on_heap(pawl_heap* heap, Call call) {
  return finish([&]() -> Status { return heap == nullptr ? no_heap() : call(*heap->heap); });
}

pawl::ReportFault report_to(pawl_heap_report* report, void* context) {
  if (report == nullptr) return {};
  return [report, context](const std::string& text) { report(context, text.c_str()); };
}

char* block_of(void* block) { return static_cast<char*>(block); }

}  // namespace

extern "C" {

PAWL_PUBLIC int pawl_heap_options_init(struct pawl_heap_options* options) {
  return finish([&]() -> Status {
    if (options == nullptr) return invalid("options must not be NULL");
    *options = pawl_heap_options{};
    options->struct_size_bytes = sizeof *options;
    if (const char* const verify = pawl::environment_variable(kVerifyVariable)) {
      if (std::strcmp(verify, "0") != 0 && std::strcmp(verify, "1") != 0)
        return Status::failure(
            EINVAL, PAWL_ERROR_INVALID_VARIABLE,
            std::string(kVerifyVariable) + " is not understood: it takes 0 or 1");
      options->verify = verify[0] == '1' ? 1 : 0;
    }
    auto environment = pawl::Options::from_environment();
    if (!environment.ok()) return environment.status();
    options->mapping = environment.value().to_public();
    return {};
  });
}

PAWL_PUBLIC pawl_heap* pawl_heap_open(const char* path, const struct pawl_heap_options* options) {
  const void* const caller = __builtin_return_address(0);
  return value_or<pawl_heap*>(nullptr, [&]() -> Result<pawl_heap*> {
    if (path == nullptr) return invalid("path must not be NULL");
    pawl::link_the_wrappers();
    auto understood = understand(options);
    if (!understood.ok()) return understood.status();
    understood.value().mapping.mapped_by = caller;
    auto opened = open_path(path, understood.value());
    if (!opened.ok()) return opened.status();
    auto handle = std::make_unique<pawl_heap>();
    handle->heap = std::move(opened.value());
    if (const Status added = pawl::open_heaps::add(handle.get()); !added.ok()) {
      [[maybe_unused]] const Status closed = handle->heap->close();
      return added;
    }
    return handle.release();
  });
}

PAWL_PUBLIC int pawl_heap_close(pawl_heap* heap) {
  return on_heap(heap, [&](const Heap& of) -> Status {
    const bool is_copy = of.is_of_other_memory();
    if (!is_copy) PAWL_TRY(of.in_own_process());
    pawl::open_heaps::remove(heap);
    const std::unique_ptr<pawl_heap> owned(heap);
    return is_copy ? owned->heap->unmap_copy() : owned->heap->close();
  });
}

PAWL_PUBLIC void* pawl_heap_malloc(pawl_heap* heap, size_t size) {
  return pawl_heap_aligned_alloc(heap, pawl::heap_format::kBlockAlignment, size);
}

PAWL_PUBLIC void* pawl_heap_calloc(pawl_heap* heap, size_t count, size_t size) {
  return of_heap<void*>(heap, nullptr, [&](Heap& of) -> Result<char*> {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes))
      return Status::failure(ENOMEM, PAWL_ERROR_TOO_LARGE, "no heap can hold that many");
    return of.allocate_zeroed(bytes);
  });
}

PAWL_PUBLIC void* pawl_heap_realloc(pawl_heap* heap, void* block, size_t size) {
  return of_heap<void*>(heap, nullptr,
                        [&](Heap& of) { return of.reallocate(block_of(block), size); });
}

PAWL_PUBLIC void* pawl_heap_aligned_alloc(pawl_heap* heap, size_t alignment, size_t size) {
  return of_heap<void*>(heap, nullptr, [&](Heap& of) { return of.allocate(size, alignment); });
}

PAWL_PUBLIC int pawl_heap_free(pawl_heap* heap, void* block) {
  return on_heap(heap,
                 [&](Heap& of) { return block == nullptr ? Status{} : of.free(block_of(block)); });
}

PAWL_PUBLIC size_t pawl_heap_usable_size(pawl_heap* heap, const void* block) {
  return of_heap<size_t>(heap, 0,
                         [&](Heap& of) { return of.usable_size(static_cast<const char*>(block)); });
}

PAWL_PUBLIC void* pawl_heap_root(pawl_heap* heap) {
  return of_heap<void*>(heap, nullptr, [](Heap& of) { return of.root(); });
}

PAWL_PUBLIC int pawl_heap_set_root(pawl_heap* heap, void* root) {
  return on_heap(heap, [&](Heap& of) { return of.set_root(block_of(root)); });
}

PAWL_PUBLIC void* pawl_heap_named_root(pawl_heap* heap, const char* name, uint64_t* type_tag) {
  return of_heap<void*>(heap, nullptr, [&](Heap& of) -> Result<char*> {
    if (name == nullptr) return invalid("name must not be NULL");
    auto found = of.named_root(name);
    if (!found.ok()) return found.status();
    if (type_tag != nullptr) *type_tag = found.value().type_tag;
    return found.value().address;
  });
}

PAWL_PUBLIC int pawl_heap_set_named_root(pawl_heap* heap, const char* name, void* root,
                                         uint64_t type_tag) {
  return on_heap(heap, [&](Heap& of) {
    return name == nullptr ? invalid("name must not be NULL")
                           : of.set_named_root(name, {block_of(root), type_tag});
  });
}

PAWL_PUBLIC int pawl_heap_sync(pawl_heap* heap) {
  pawl::cancellation_point();
  return on_heap(heap, [](Heap& of) { return of.sync(); });
}

PAWL_PUBLIC int pawl_heap_rollback(pawl_heap* heap) {
  return on_heap(heap, [](Heap& of) { return of.roll_back(); });
}

PAWL_PUBLIC long pawl_heap_check(pawl_heap* heap, pawl_heap_report* report, void* context) {
  return of_heap<long>(heap, -1, [&](Heap& of) { return of.check(report_to(report, context)); });
}

PAWL_PUBLIC long pawl_heap_verify(pawl_heap* heap, pawl_heap_report* report, void* context) {
  return of_heap<long>(heap, -1, [&](Heap& of) { return of.verify(report_to(report, context)); });
}

PAWL_PUBLIC int pawl_heap_info(pawl_heap* heap, struct pawl_heap_information* information) {
  return on_heap(heap, [&](Heap& of) {
    return information == nullptr ? invalid("information must not be NULL")
                                  : of.information(*information);
  });
}

PAWL_PUBLIC int pawl_heap_stats(pawl_heap* heap, struct pawl_statistics* statistics) {
  return on_heap(heap, [&](Heap& of) -> Status {
    if (statistics == nullptr) return invalid("statistics must not be NULL");
    pawl::MappingStatistics counted;
    PAWL_TRY(of.statistics(counted));
    *statistics = counted;
    return {};
  });
}

PAWL_PUBLIC pawl_heap* pawl_heap_of(const void* address) { return pawl::open_heaps::find(address); }

PAWL_PUBLIC pawl_heap* pawl_heap_default(void) { return pawl::open_heaps::default_heap(); }

PAWL_PUBLIC int pawl_heap_set_default(pawl_heap* heap) {
  return on_heap(heap, [&](Heap&) -> Status {
    pawl::open_heaps::set_default(heap);
    return {};
  });
}

// Each allocation of a C++ container asks.
PAWL_PUBLIC void* pawl_heap_resource_place(pawl_heap* heap) {
  if (heap != nullptr) return heap->heap->resource_place();
  return value_or<void*>(nullptr, []() -> Result<void*> { return no_heap(); });
}

}  // extern "C"
