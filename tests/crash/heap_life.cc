#include "crash/heap_life.h"

#include <cerrno>
#include <cstring>

#include "crash/repeatable.h"
#include "medium/persistent_copy.h"

namespace pawl::test {
namespace {

constexpr std::uint16_t kVolume = 0;
constexpr std::size_t kAlignment = alignof(std::max_align_t);

// The file as a commit of the heap's memory leaves it; `before` is what it was.
Content content_of(pawl_heap* heap, Content before) {
  pawl_heap_information information;
  PAWL_ASSERT(pawl_heap_info(heap, &information) == 0);
  before.resize(information.size_bytes);
  const auto* const base = reinterpret_cast<const std::byte*>(information.address);
  std::array<std::byte, kPageBytes> was;
  for (std::uint64_t offset = 0; offset < information.size_bytes; offset += kPageBytes) {
    before.read(offset, was);
    if (std::memcmp(was.data(), base + offset, kPageBytes) != 0)
      before.write(offset, {base + offset, kPageBytes});
  }
  return before;
}

MemoryDiskOptions disk_options(bool can_mark, bool is_memory = false) {
  return {.backing = is_memory ? Backing::mapped : Backing::memory_file,
          .can_mark = can_mark,
          .block_bytes = is_memory ? kMemoryLineBytes : kPageBytes};
}

class Life {
 public:
  Life(const HeapLifeOptions& options, const StoredDisk& disk, const Content& content,
       const HeapModel& model)
      : options_(options),
        random_(options.seed),
        disk_(disk, disk_options(options.can_mark, options.is_memory)),
        recorder_({disk}, options.can_mark, options.seed, options.pauses, options.is_memory),
        now_(model),
        synced_(model),
        content_(content) {
    begin();
    recorder_.acknowledge(kVolume, number_);
    recorder_.fail(options.fault);
  }

  HeapLifeEnd live() {
    repeat_from(options_.seed);
    open();
    for (unsigned step = 0; step < options_.steps && !over(); ++step) take_step();
    if (!over() && below(random_, 2) == 0) close();
    recorder_.kill(kVolume);
    handle_.heap.reset();
    if (end_.wrong.empty()) end_.wrong = recorder_.wrong();
    end_.failed_before = recorder_.failed_before();
    end_.operations = recorder_.operations();
    end_.trace = recorder_.take();
    return std::move(end_);
  }

 private:
  bool over() const { return dead_ || !end_.wrong.empty(); }
  void fail(const std::string& what) {
    if (end_.wrong.empty()) end_.wrong = what;
  }
  void expect(const char* when, const std::string& wrong) {
    if (!wrong.empty()) fail(std::string(when) + ": " + wrong);
  }
  pawl_heap* heap() { return &handle_; }
  bool fault_happened() const { return recorder_.failed_before().has_value(); }

  void open() {
    for (int attempt = 0; attempt < 2; ++attempt) {
      auto opened = Heap::open(recorder_.record(disk_.open(), kVolume), options_.heap);
      if (opened.ok()) {
        handle_.heap = std::move(opened.value());
        if (content_of(heap(), {}).first_difference(content_).has_value())
          fail("opened, its memory is not the file");
        expect("opened", now_.compare(heap()));
        return expect("opened", check_text(heap()));
      }
      if (opened.status().error_number() != ENOSPC || !fault_happened())
        return meet(opened.status().error_number(), "open: " + opened.status().text());
      recorder_.mend();
    }
    fail("with space again the heap is not opened");
  }

  void begin() {
    number_ = recorder_.begin_commit(kVolume, content_);
    end_.models.push_back(now_);
  }

  // Makes a call; when the disk is full, again with space.  Whether it succeeded.
  template <class Call>
  bool call(const char* what, Call make) {
    if (make()) return true;
    if (errno == ENOSPC && fault_happened()) {
      expect("after ENOSPC", now_.compare(heap()));
      expect("after ENOSPC", check_text(heap()));
      recorder_.mend();
      if (make()) return true;
      fail(std::string("with space again: ") + pawl_last_error());
    }
    meet(errno, std::string(what) + ": " + pawl_last_error());
    return false;
  }

  void meet(int error_number, const std::string& what) {
    if (error_number == ENOMEM) return;
    if (!fault_happened()) return fail(what + " (though the disk has not failed)");
    dead_ = true;
    // A disk without space may end a mapping as well: what waits to be written has no other way.
    if (error_number != EIO) return fail(what);
    if (handle_.heap != nullptr && pawl_heap_sync(heap()) == 0) fail("a sync after EIO succeeds");
  }

  void take_step() {
    const std::uint64_t chance = below(random_, 100);
    if (chance < 6) return sync();
    if (chance < 8) return roll_back();
    if (chance < 12) return set_root();
    if (chance < 20) return rewrite();
    if (chance < 30) return resize();
    if (chance < 70) return take();
    if (!now_.blocks().empty()) {
      char* const block = now_.any_block(random_);
      now_.remove(block);
      if (pawl_heap_free(heap(), block) != 0) fail(pawl_last_error());
    }
  }

  void take() {
    const std::size_t size = draw_block_size(random_);
    char* block = nullptr;
    const bool taken = call("malloc", [&] {
      block = static_cast<char*>(pawl_heap_malloc(heap(), size));
      return block != nullptr;
    });
    if (taken) expect("a new block", now_.add(heap(), block, size, kAlignment));
  }

  void resize() {
    if (now_.blocks().empty()) return;
    char* const block = now_.any_block(random_);
    const std::size_t size = draw_block_size(random_);
    char* resized = nullptr;
    const bool taken = call("realloc", [&] {
      resized = static_cast<char*>(pawl_heap_realloc(heap(), block, size));
      return resized != nullptr;
    });
    if (taken) expect("realloc", now_.resized(heap(), block, resized, size));
  }

  void rewrite() {
    if (!now_.blocks().empty()) now_.rewrite(now_.any_block(random_));
  }

  void set_root() {
    if (now_.blocks().empty()) return;
    char* const to = now_.any_block(random_);
    if (below(random_, 2) == 0) {
      if (pawl_heap_set_root(heap(), to) != 0) fail(pawl_last_error());
      return now_.set_root(to);
    }
    const std::string name = "root " + std::to_string(below(random_, 20));
    if (pawl_heap_set_named_root(heap(), name.c_str(), to, 1) != 0) fail(pawl_last_error());
    now_.set_named(name, {to, 1});
  }

  void sync() {
    content_ = content_of(heap(), std::move(content_));
    const bool synced = call("sync", [&] {
      begin();
      if (pawl_heap_sync(heap()) == 0) return true;
      if (errno == ENOSPC && !options_.fault.late) recorder_.refuse(kVolume, number_);
      return false;
    });
    if (!synced) return;
    recorder_.acknowledge(kVolume, number_);
    synced_ = now_;
    expect("after a sync", check_text(heap()));
  }

  void roll_back() {
    HeapModel before = now_;
    const bool done = call("rollback", [&] {
      if (pawl_heap_rollback(heap()) == 0) return true;
      // What was not rolled back is still there.
      return false;
    });
    if (!done) return;
    now_ = synced_;
    expect("after a rollback", now_.compare(heap()));
    expect("after a rollback", check_text(heap()));
  }

  void close() {
    if (const Status closed = handle_.heap->close(); !closed.ok()) {
      if (!fault_happened()) fail("close: " + closed.text());
      return;
    }
    const StoredDisk after = disk_.state();
    if (after.journal.has_value() || after.mark.has_value())
      fail("after a clean close there is still a journal, or a mark");
  }

  const HeapLifeOptions& options_;
  Random random_;
  MemoryDisk disk_;
  Recorder recorder_;
  pawl_heap handle_;
  HeapModel now_;
  HeapModel synced_;
  Content content_;
  std::uint64_t number_ = 0;
  bool dead_ = false;
  HeapLifeEnd end_;
};

}  // namespace

HeapLifeEnd live(const HeapLifeOptions& options, const StoredDisk& disk, const Content& content,
                 const HeapModel& model) {
  return Life(options, disk, content, model).live();
}

HeapLifeEnd make_and_raise(const HeapLifeOptions& options) {
  repeat_from(options.seed);
  HeapLifeEnd end;
  end.models.resize(3);
  const StoredDisk empty{};
  MemoryDisk disk(empty, disk_options(options.can_mark, options.is_memory));
  Recorder recorder({empty}, options.can_mark, options.seed, options.pauses, options.is_memory);
  std::vector<Content> contents(1);
  recorder.acknowledge(kVolume, recorder.begin_commit(kVolume, {}));
  HeapOptions heap_options = options.heap;
  for (std::uint64_t number = 1; number <= 2; ++number) {
    // What it will be is known afterwards only.
    recorder.begin_commit(kVolume, {});
    auto opened = Heap::open(recorder.record(disk.open(), kVolume), heap_options);
    if (!opened.ok()) {
      end.wrong = opened.status().text();
      break;
    }
    recorder.acknowledge(kVolume, number);
    pawl_heap handle{std::move(opened.value())};
    contents.push_back(content_of(&handle, {}));
    if (const Status closed = handle.heap->close(); !closed.ok()) end.wrong = closed.text();
    heap_options.size_bytes_max *= 2;
  }
  end.operations = recorder.operations();
  end.trace = recorder.take();
  if (end.wrong.empty()) end.trace.volumes[kVolume].commits = contents;
  return end;
}

std::string audit(const StoredDisk& disk, bool can_mark, const HeapOptions& options,
                  const HeapModel& model) {
  MemoryDisk memory(disk, disk_options(can_mark));
  auto opened = Heap::open(memory.open(), options);
  if (!opened.ok()) return "it is not opened: " + opened.status().text();
  pawl_heap handle{std::move(opened.value())};
  std::string wrong = model.compare(&handle);
  if (wrong.empty()) wrong = check_text(&handle);
  if (const Status closed = handle.heap->close(); wrong.empty() && !closed.ok())
    wrong = closed.text();
  return wrong;
}

StoredDisk new_heap(const HeapOptions& options) {
  MemoryDisk disk(StoredDisk{}, disk_options(true));
  auto opened = Heap::open(disk.open(), options);
  PAWL_ASSERT(opened.ok() && opened.value()->close().ok());
  return disk.state();
}

}  // namespace pawl::test
