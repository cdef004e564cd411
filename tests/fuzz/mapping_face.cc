#include <sys/mman.h>
#include <array>
#include <cerrno>
#include <utility>

#include "fuzz/face.h"
#include "mapping/statistics.h"
#include "support/memory_medium.h"

namespace pawl::fuzz {
namespace {

// An address that may point to nothing.
char* beside(char* address, std::int64_t bytes) {
  return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(address) +
                                 static_cast<std::uintptr_t>(bytes));
}

class MappingFace final : public Face {
 public:
  MappingFace(Content content, bool can_mark)
      : disk_({.base = std::move(content), .mark = {}, .journal = {}},
              {.backing = test::Backing::memory_file, .can_mark = can_mark}) {}

  Status open(const Options& options, const PageRun& window) override {
    closed_.reset();
    auto opened = Mapping::open(disk_.open(), options);
    if (!opened.ok()) return opened.status();
    mapping_ = std::move(opened.value());
    return mapping_
        ->map_window(nullptr, window.count * kPageBytes, PROT_READ | PROT_WRITE, 0,
                     window.first * kPageBytes)
        .status();
  }
  Status commit(char* address, std::size_t length) override {
    return mapping_->commit(address, length);
  }
  Status queue(char* address, std::size_t length) override {
    return mapping_->commit_async(address, length);
  }
  Status wait() override { return mapping_->wait(); }
  Status roll_back(char* address, std::size_t length) override {
    return mapping_->roll_back(address, length);
  }
  Status truncate(std::uint64_t size_bytes) override { return mapping_->truncate(size_bytes); }
  Status close() override {
    const Status status = mapping_->close();
    closed_ = std::move(mapping_);
    return status;
  }
  void crash() override { mapping_.reset(); }
  Status recover() override { return pawl::recover(*disk_.open()).status(); }

  void call_wrongly(const Call& call) override {
    if (closed_ != nullptr) return call_closed(call);
    char* const address = mapping_->window().has_value() ? mapping_->window()->address : nullptr;
    const std::size_t length = address != nullptr ? mapping_->window()->length : kPageBytes;
    constexpr std::size_t kPastAnything = ~std::size_t{0} - 100;
    switch (call.a % 14) {
      case 0:
        return must_fail(mapping_->commit(beside(address, 1 + call.b % 4095), 100), EINVAL,
                         "unaligned");
      case 1:
        return must_fail(mapping_->roll_back(beside(address, 8), kPageBytes), EINVAL, "unaligned");
      case 2:
        return must_fail(mapping_->commit(address, length + 1 + call.b), ENOMEM, "past the end");
      case 3:
        return must_fail(
            mapping_->commit_async(beside(address, static_cast<std::int64_t>(length)), kPageBytes),
            ENOMEM, "behind");
      case 4:
        return must_fail(mapping_->commit(address, kPastAnything), ENOMEM, "length overflows");
      case 5:
        return must_fail(mapping_->commit(beside(address, -4096), kPageBytes), ENOMEM, "before");
      case 6:
        return must_fail(mapping_->truncate(kTooLarge + call.c), EFBIG, "no such size");
      case 7:
        return must_fail(mapping_->write(~std::uint64_t{0} - call.b, kBytes), EFBIG, "overflow");
      case 8:
        return must_fail(mapping_->allocate(call.c, 0), EINVAL, "nothing to allocate");
      case 9:
        return must_fail(mapping_->allocate(kTooLarge, ~std::uint64_t{0} - call.b), EINVAL,
                         "overflow");
      case 10:
        return must_fail(Mapping::open(disk_.open(), Options{}).status(), EBUSY, "a second writer");
      case 11:
        return must_fail(pawl::recover(*disk_.open()).status(), EBUSY, "recovery of a mapped file");
      case 12:
        if (address == nullptr) return must_fail(mapping_->unmap_window(true), EINVAL, "no window");
        return must_fail(mapping_->map_window(nullptr, kPageBytes, PROT_READ, 0, 0).status(), EBUSY,
                         "a second window");
      default:
        memory::LeftPlace left;
        if (address == nullptr) {
          return must_fail(mapping_->remap_window(kPageBytes, true, nullptr, left).status(), EINVAL,
                           "no window");
        }
        return must_fail(
            mapping_->remap_window(call.b % 2 == 0 ? 0 : 4097, true, nullptr, left).status(),
            EINVAL, "no such length");
    }
  }

  Content file() override { return disk_.state().base; }
  bool is_just_a_file() override {
    const test::StoredDisk state = disk_.state();
    return !state.mark.has_value() && !state.journal.has_value();
  }
  Mapping* mapping() override { return mapping_.get(); }
  bool has_all_calls() const override { return true; }

 private:
  static constexpr std::array<std::byte, 300> kBytes{};

  void call_closed(const Call& call) {
    std::array<std::byte, 100> bytes{};
    switch (call.a % 10) {
      case 0:
        return must_fail(closed_->commit_all(), EINVAL, "closed");
      case 1:
        return must_fail(closed_->commit(nullptr, kPageBytes), EINVAL, "closed");
      case 2:
        return must_fail(closed_->truncate(call.b), EINVAL, "closed");
      case 3:
        return must_fail(closed_->write(call.b, kBytes), EINVAL, "closed");
      case 4:
        return must_fail(closed_->map_window(nullptr, kPageBytes, PROT_READ, 0, 0).status(), EINVAL,
                         "closed");
      case 5:
        return must_fail(closed_->unmap_window(true), EINVAL, "closed");
      case 6:
        return must_fail(closed_->close(), EINVAL, "closed");
      case 7:
        return must_fail(closed_->roll_back(nullptr, kPageBytes), EINVAL, "closed");
      case 8: {
        [[maybe_unused]] const bool pending = closed_->has_pending_changes();
        [[maybe_unused]] const auto count = closed_->read(call.b, bytes);
        MappingStatistics statistics;
        closed_->statistics(statistics);
        return;
      }
      default:
        return must_fail(closed_->wait(), EINVAL, "closed");
    }
  }

  test::MemoryDisk disk_;
  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<Mapping> closed_;  // the last, for calls that come too late
};

}  // namespace

std::unique_ptr<Face> mapping_face(Content content, bool can_mark) {
  return std::make_unique<MappingFace>(std::move(content), can_mark);
}

}  // namespace pawl::fuzz
