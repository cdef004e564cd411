// The C border of failure-atomic sections.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "fase/file.h"
#include "fase/program.h"
#include "fase/thread.h"
#include "mapping/border.h"
#include "medium/environment.h"
#include "medium/fork_safe_lock.h"
#include "pawl/fase.h"

namespace {

using pawl::finish;
using pawl::ForkSafeLock;
using pawl::invalid;
using pawl::Result;
using pawl::Status;
using pawl::fase::File;
using pawl::fase::FileOptions;
using pawl::fase::open_file;
using pawl::fase::Thread;

static_assert(pawl::fase::kThreadsMax == PAWL_FASE_THREADS_MAX);
static_assert(pawl::fase::kLocksMax == PAWL_FASE_LOCKS_MAX);
static_assert(pawl::fase::kDepthMax == PAWL_FASE_DEPTH_MAX);
static_assert(pawl::fase::kBlocksMax == PAWL_FASE_BLOCKS_MAX);

constexpr int kPercentMax = 100;

// Opening and closing, one at a time.
ForkSafeLock& opening() {
  static auto* const lock = new ForkSafeLock;
  return *lock;
}

Status forked() {
  return Status::failure(EPERM, PAWL_ERROR_FORKED_CHILD,
                         "the file was opened before fork(2); the child cannot use it");
}

Status misunderstood(std::string text) {
  return Status::failure(EINVAL, PAWL_ERROR_INVALID_VARIABLE, std::move(text));
}

Status read_twice(int& percent) {
  const char* const value = pawl::environment_variable(pawl::fase::kTwiceVariable);
  if (value == nullptr) return {};
  char* end = nullptr;
  const long number = std::strtol(value, &end, 10);
  if (*value < '0' || *value > '9' || *end != '\0' || number > kPercentMax)
    return misunderstood(std::string(pawl::fase::kTwiceVariable) + "=" + value +
                         " is not understood: it takes 0 to 100");
  percent = static_cast<int>(number);
  return {};
}

Status read_flush(int& on_fail) {
  const char* const value = pawl::environment_variable("PAWL_FASE_FLUSH");
  if (value == nullptr) return {};
  on_fail = std::strcmp(value, "on-fail") == 0 ? 1 : 0;
  if (on_fail == 1 || std::strcmp(value, "commit") == 0) return {};
  return misunderstood(std::string("PAWL_FASE_FLUSH=") + value +
                       " is not understood: it takes commit or on-fail");
}

// What the scheme undo is compared as.  Of programs only that are compiled for it.
Status read_undo(bool& is_atlas) {
  const char* const value = pawl::environment_variable("PAWL_FASE_UNDO");
  if (value == nullptr) return {};
  is_atlas = std::strcmp(value, "atlas") == 0;
  if (is_atlas) return {};
  return misunderstood(std::string("PAWL_FASE_UNDO=") + value +
                       " is not understood: it takes atlas");
}

Result<FileOptions> understand(const pawl_fase_options* given) {
  pawl_fase_options defaults;
  if (given == nullptr) {
    if (pawl_fase_options_init(&defaults) != 0) {
      const int error_number = errno;
      return Status::failure(error_number, pawl::last_error_code(), pawl_last_error());
    }
    given = &defaults;
  }
  if (given->struct_size_bytes != sizeof *given)
    return invalid(
        "options were not filled by pawl_fase_options_init, or by one of another version");
  if (given->size_bytes_max < PAWL_FASE_SIZE_MIN || given->size_bytes_max > PAWL_FASE_SIZE_MAX)
    return invalid("size_bytes_max must be from " + std::to_string(PAWL_FASE_SIZE_MIN) + " to " +
                   std::to_string(PAWL_FASE_SIZE_MAX));
  if (given->twice_percent < 0 || given->twice_percent > kPercentMax)
    return invalid("twice_percent must be from 0 to 100");
  constexpr std::uint64_t kUnit = std::uint64_t{64} << 10;
  if (given->unprotected != 0 && given->unprotected != 1)
    return invalid("unprotected must be 0 or 1");
  if (given->flush_on_fail != 0 && given->flush_on_fail != 1)
    return invalid("flush_on_fail must be 0 or 1");
  bool undo_is_atlas = false;
  PAWL_TRY(read_undo(undo_is_atlas));
  return FileOptions{.heap_bytes = pawl::round_up(given->size_bytes_max, kUnit),
                     .twice_percent = given->twice_percent,
                     .is_unprotected = given->unprotected != 0,
                     .flushes_on_fail = given->flush_on_fail != 0,
                     .undo_is_atlas = undo_is_atlas};
}

// The file of the handle: that of this thread's recovery, or the open one.
Result<File*> file_of(const pawl_fase* fase) {
  if (pawl::fase::is_forked_child()) return forked();
  File* const file = Thread::current_file();
  if (file == nullptr || fase == nullptr ||
      reinterpret_cast<std::uint64_t>(fase) != file->address())
    return Status::failure(EINVAL, PAWL_ERROR_CLOSED,
                           "there is no such open file of failure-atomic sections");
  return file;
}

template <class Call>
int on_file(const pawl_fase* fase, Call call) {
  return finish([&]() -> Status {
    auto file = file_of(fase);
    if (!file.ok()) return file.status();
    return call(*file.value());
  });
}

// What call() does with the blocks of the thread.
template <class Call>
auto with_blocks(Call call) {
  Thread& thread = Thread::current().lent_to_handler();
  auto outcome = call(thread);
  thread.return_to_handler();
  return outcome;
}

void* allocate(const pawl_fase* fase, std::size_t size, bool zeroed) {
  void* block = nullptr;
  on_file(fase, [&](File&) -> Status {
    auto allocated = with_blocks([&](Thread& thread) { return thread.allocate(size, zeroed); });
    if (!allocated.ok()) return allocated.status();
    block = allocated.value();
    return {};
  });
  return block;
}

// The C library's functions would wait for ever for a lock that it did not store.
void warn_without_sections(const File& file) {
  if (file.is_unprotected() || !file.has_locks_of_sections() ||
      pawl::fase::Program::own().has_sections()) {
    return;
  }
  std::fprintf(stderr,
               "pawl: %s has been used by failure-atomic sections, and this program has none: it "
               "waits for ever for a lock in the file; compile it with pawl-clang -fpawl=ido\n",
               file.path().c_str());
}

// Of code that was compiled as any other.
void expect_unprotected(const char* function) {
  const File* const file = open_file();
  if (file != nullptr && file->is_unprotected()) return;
  std::fprintf(stderr,
               "pawl: %s() was called by code that was not compiled with pawl-clang -fpawl=ido: a "
               "crash would leave its section half done\n",
               function);
  std::abort();
}

}  // namespace

extern "C" {

PAWL_PUBLIC int pawl_fase_options_init(struct pawl_fase_options* options) {
  return finish([&]() -> Status {
    if (options == nullptr) return invalid("options must not be NULL");
    *options = {.struct_size_bytes = sizeof *options,
                .size_bytes_max = PAWL_FASE_SIZE_DEFAULT,
                .unprotected = 0,
                .twice_percent = 0,
                .flush_on_fail = 0};
    PAWL_TRY(read_flush(options->flush_on_fail));
    return read_twice(options->twice_percent);
  });
}

PAWL_PUBLIC pawl_fase* pawl_fase_open(const char* path, const struct pawl_fase_options* options) {
  pawl_fase* handle = nullptr;
  finish([&]() -> Status {
    if (path == nullptr) return invalid("path must not be NULL");
    if (pawl::fase::is_forked_child()) return forked();
    auto understood = understand(options);
    if (!understood.ok()) return understood.status();
    const std::lock_guard lock(opening());
    if (const File* const open = open_file()) {
      return Status::failure(ENFILE, PAWL_ERROR_STILL_OPEN,
                             open->path() +
                                 " is open; a process has one file of failure-atomic "
                                 "sections open at a time");
    }
    auto opened = File::open(path, understood.value());
    if (!opened.ok()) return opened.status();
    File* const file = opened.value().release();
    pawl::fase::Rehearsal::set_percent(understood.value().twice_percent);
    pawl::fase::begin_counting();
    pawl::fase::set_open_file(file);
    warn_without_sections(*file);
    handle = reinterpret_cast<pawl_fase*>(&file->header());
    return {};
  });
  return handle;
}

PAWL_PUBLIC int pawl_fase_close(pawl_fase* fase) {
  return on_file(fase, [&](File& file) -> Status {
    const std::lock_guard lock(opening());
    PAWL_TRY(pawl::fase::detach_all_threads());
    PAWL_TRY(file.end_run());
    pawl::fase::set_open_file(nullptr);
    const std::unique_ptr<File> owned(&file);
    return {};
  });
}

PAWL_PUBLIC void* pawl_fase_root(pawl_fase* fase) {
  void* root = nullptr;
  on_file(fase, [&](File& file) -> Status {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
    root = reinterpret_cast<void*>(std::atomic_ref(file.header().root).load());
    return {};
  });
  return root;
}

PAWL_PUBLIC int pawl_fase_set_root(pawl_fase* fase, void* root) {
  return on_file(fase, [&](File& file) -> Status {
    if (root != nullptr && !file.holds(root)) return invalid("the root must be in the file");
    std::uint64_t& word = file.header().root;
    Thread& thread = Thread::current().lent_if_made();
    thread.will_store(&word, sizeof word);
    std::atomic_ref(word).store(reinterpret_cast<std::uint64_t>(root));
    thread.stored(&word, sizeof word);
    if (!thread.is_in_fase()) thread.persist_stored();
    thread.return_to_handler();
    return {};
  });
}

PAWL_PUBLIC void* pawl_fase_malloc(pawl_fase* fase, size_t size) {
  return allocate(fase, size, false);
}

PAWL_PUBLIC void* pawl_fase_calloc(pawl_fase* fase, size_t count, size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    pawl::set_last_error(
        Status::failure(ENOMEM, PAWL_ERROR_TOO_LARGE, "no file can hold that many"));
    return nullptr;
  }
  return allocate(fase, bytes, true);
}

PAWL_PUBLIC int pawl_fase_free(pawl_fase* fase, void* block) {
  return on_file(fase, [&](File& file) -> Status {
    if (block == nullptr) return {};
    if (!file.holds(block))
      return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK, "the block is not in the file");
    return with_blocks([&](Thread& thread) { return thread.free(block); });
  });
}

PAWL_PUBLIC size_t pawl_fase_usable_size(pawl_fase* fase, const void* block) {
  std::size_t bytes = 0;
  on_file(fase, [&](File& file) -> Status {
    if (!file.holds(block))
      return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK, "the block is not in the file");
    auto size = file.blocks().usable_size(reinterpret_cast<std::uint64_t>(block));
    if (!size.ok()) return size.status();
    bytes = size.value();
    return {};
  });
  return bytes;
}

PAWL_PUBLIC void pawl_fase_begin(void) { expect_unprotected("pawl_fase_begin"); }
PAWL_PUBLIC void pawl_fase_end(void) { expect_unprotected("pawl_fase_end"); }

PAWL_PUBLIC int pawl_fase_persist(const void* at, size_t bytes) {
  return finish([&]() -> Status {
    if (pawl::fase::is_forked_child()) return forked();
    Thread& thread = Thread::current();
    const File* const file = thread.file();
    if (file == nullptr || !file->holds(at) ||
        bytes > file->address() + file->size_bytes() - reinterpret_cast<std::uint64_t>(at))
      return invalid("the bytes are not in an open file of failure-atomic sections");
    thread.persist(at, bytes);
    return {};
  });
}

PAWL_PUBLIC int pawl_fase_stats(pawl_fase* fase, struct pawl_fase_statistics* statistics) {
  return on_file(fase, [&](File& file) -> Status {
    if (statistics == nullptr) return invalid("statistics must not be NULL");
    pawl::fase::Counts counts;
    pawl::fase::sum_counts(counts);
    *statistics = {.sections = counts.fases,
                   .sections_armed = counts.fases_armed,
                   .frames = counts.frames,
                   .fences = counts.fences,
                   .lines_flushed = counts.lines_flushed,
                   .bytes_logged = counts.bytes_logged,
                   .sections_recovered = file.fases_recovered(),
                   .survives_power_loss = file.is_persistent() && file.flushes() ? 1 : 0};
    return {};
  });
}

}  // extern "C"
