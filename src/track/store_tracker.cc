// Tracks by being told: see track/store_marks.h for how.
#include <sys/mman.h>

#include <cerrno>

#include "medium/memory_functions.h"
#include "track/store_marks.h"
#include "track/tracker.h"

namespace pawl {

namespace {

class StoreTracker final : public Tracker {
 public:
  ~StoreTracker() override { StoreMarks::unwatch(this, 0, ~std::uint64_t{0}); }

  Status check_addresses(const char* address, std::size_t length) const override {
    if (in_store_region(address) && in_store_region(address + length - 1)) return {};
    return Status::failure(
        EINVAL,
        "with the store tracker a mapping gets an address that compiled programs look for: map "
        "it with the address NULL and without MAP_FIXED, or use a heap");
  }
  Status watch(char* address, std::size_t length, int /*protection*/) override {
    PAWL_TRY(check_addresses(address, length));
    return StoreMarks::watch(this, page_of(address), page_of(address + length));
  }
  void unwatch(char* address, std::size_t length) override {
    StoreMarks::unwatch(this, page_of(address), page_of(address + length));
  }

  Status collect(char* address, std::size_t length, PageRuns& stored) override {
    std::vector<StoredLines> taken;
    const auto give_back = [&taken] {
      for (const StoredLines& page : taken) {
        const std::uint64_t at = page.page * kPageBytes;
        note_stored(reinterpret_cast<const void*>(at), kPageBytes);  // NOLINT: an address
      }
    };
    try {
      Status status = collect_lines(address, length, taken);
      if (!status.ok()) {
        give_back();
        return status;
      }
      for (const StoredLines& page : taken) stored.add(page.page);
    } catch (...) {
      give_back();
      throw;
    }
    return {};
  }
  bool knows_lines() const override { return true; }
  Status collect_lines(char* address, std::size_t length,
                       std::vector<StoredLines>& stored) override {
    return StoreMarks::collect(this, page_of(address), page_of(address + length), stored);
  }
  void note_store(const char* address, std::size_t length) noexcept override {
    note_stored(address, length);
  }

  Status protect(char* address, std::size_t length, int protection) override {
    if (memory::protect(address, length, protection) == 0) return {};
    return FailedCall{errno, "cannot change the protection of a mapping"};
  }
  const char* name() const override { return "store"; }
  TrackerCounters counters() const override { return {}; }
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_store_tracker() {
  return std::unique_ptr<Tracker>(std::make_unique<StoreTracker>());
}

}  // namespace pawl
