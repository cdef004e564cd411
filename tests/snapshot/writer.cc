#include "snapshot/writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "pawl/pawl.h"

namespace pawl::test {
namespace {

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free);

constexpr std::uint64_t kWindowPages = StateShape::kLargePages + 16;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "writer: %s: %s\n", what, pawl_last_error());
  ::_exit(1);
}

Counter* map_counter(const std::string& path) {
  const Descriptor file(::open((path + ".count").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid() || ::ftruncate(file.get(), kPageBytes) != 0) return nullptr;
  void* const at = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return at == MAP_FAILED ? nullptr : static_cast<Counter*>(at);
}

class Work {
 public:
  Work(const std::string& path, const WriterOptions& options) : options_(options) {
    shape_.large_every = options.large_every;
    counter_ = map_counter(path);
    file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
    if (counter_ == nullptr || !file_.valid()) give_up("files");
  }

  [[noreturn]] void go_on() {
    map();
    std::uint64_t generation = 0;
    if (::lseek(file_.get(), 0, SEEK_END) > 0) std::memcpy(&generation, bytes_, sizeof generation);
    for (;;) {
      ++generation;
      commit(generation);
      if (options_.reopen_every != 0 && generation % options_.reopen_every == 0) {
        if (pawl_munmap(bytes_, kWindowPages * kPageBytes) != 0) give_up("munmap");
        map();
      }
    }
  }

 private:
  void map() {
    pawl_options options;
    if (pawl_options_init(&options) != 0) give_up("options");
    options.apply = options_.apply;
    options.tracker = options_.tracker;
    options.medium = options_.medium;
    options.journal_size_bytes = options_.journal_bytes;
    void* const at = pawl_mmap_with(nullptr, kWindowPages * kPageBytes, PROT_READ | PROT_WRITE,
                                    MAP_ATOMIC, file_.get(), 0, &options);
    if (at == MAP_FAILED) give_up("mmap");
    bytes_ = static_cast<std::byte*>(at);
  }

  void commit(std::uint64_t generation) {
    const std::uint64_t pages = pages_of_state(generation, shape_);
    // Every third one is shorter for a moment: what was there may not come back.
    const std::uint64_t lowest = generation % 3 == 0 ? pages / 2 : pages;
    for (const std::uint64_t size : {lowest, pages})
      if (pawl_ftruncate(file_.get(), static_cast<off_t>(size * kPageBytes)) != 0)
        give_up("ftruncate");
    StatePage page;
    for (std::uint64_t number = 0; number < pages; ++number) {
      make_state_page(generation, number, pages, page);
      std::memcpy(bytes_ + number * kPageBytes, page.data(), kPageBytes);
    }
    const bool queue = options_.queued != 0 && generation % options_.queued != 0;
    if (pawl_msync(bytes_, kWindowPages * kPageBytes, queue ? MS_ASYNC : MS_SYNC) != 0)
      give_up("msync");
    if (!queue) counter_->store(generation);
  }

  const WriterOptions options_;
  StateShape shape_;
  Counter* counter_ = nullptr;
  Descriptor file_;
  std::byte* bytes_ = nullptr;
};

}  // namespace

void Writer::Unmap::operator()(Counter* counter) const { ::munmap(counter, kPageBytes); }

Writer::Writer(std::string path, const WriterOptions& options) : counter_(map_counter(path)) {
  if (counter_ == nullptr) throw std::runtime_error("cannot map the counter of " + path);
  std::vector<std::string> arguments = {"--writer", path};
  for (const std::uint64_t option :
       {std::uint64_t(options.apply), std::uint64_t(options.tracker), std::uint64_t(options.medium),
        options.journal_bytes, options.large_every, options.reopen_every, options.queued})
    arguments.push_back(std::to_string(option));
  process_ = std::make_unique<KilledProcess>(arguments);
}

std::uint64_t Writer::acknowledged() const { return counter_->load(); }

bool Writer::wait_for_more_than(std::uint64_t seen) const {
  while (acknowledged() <= seen) {
    if (process_->has_ended()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

void be_a_writer_if_asked(int argc, char** argv) {
  if (argc != 10 || std::strcmp(argv[1], "--writer") != 0) return;
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  const WriterOptions options{.apply = static_cast<int>(number(3)),
                              .tracker = static_cast<int>(number(4)),
                              .medium = static_cast<int>(number(5)),
                              .journal_bytes = number(6),
                              .large_every = number(7),
                              .reopen_every = number(8),
                              .queued = number(9)};
  Work(argv[2], options).go_on();
}

}  // namespace pawl::test
