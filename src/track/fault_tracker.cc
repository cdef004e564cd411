// Tracks by mprotect and SIGSEGV, on every kernel: see track/fault_table.h for how.
#include "medium/inherited_memory.h"
#include "track/fault_table.h"
#include "track/inherited_ranges.h"
#include "track/tracker.h"

namespace pawl {

namespace {

class FaultTracker final : public Tracker {
 public:
  ~FaultTracker() override { table_.unwatch_all(this); }

  Status watch(char* address, std::size_t length, int protection) override {
    return table_.watch(this, page_of(address), page_of(address + length), protection);
  }
  void unwatch(char* address, std::size_t length) override {
    table_.unwatch(this, page_of(address), page_of(address + length));
  }
  Status collect(char* address, std::size_t length, PageRuns& stored) override {
    table_.collect(this, page_of(address), page_of(address + length), stored);
    return {};
  }
  Status protect(char* address, std::size_t length, int protection) override {
    return table_.protect(this, page_of(address), page_of(address + length), protection);
  }
  const char* name() const override { return "fault"; }
  TrackerCounters counters() const override { return {}; }

 private:
  FaultTable& table_ = FaultTable::process();
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_fault_tracker() {
  return std::unique_ptr<Tracker>(std::make_unique<FaultTracker>());
}

bool fault_tracker_in_use() { return FaultTable::in_use() || InheritedRanges::in_use(); }

void open_for_kernel_store(const void* address, std::size_t length) {
  if (length == 0) return;
  inherited_memory::open_range(address, length);
  if (!FaultTable::in_use()) return;
  const auto first_byte = reinterpret_cast<std::uint64_t>(address);
  // A length beyond the end of the address space is the system call's to refuse.
  if (first_byte + length - 1 < first_byte) return;
  FaultTable::process().open_range(first_byte / kPageBytes,
                                   (first_byte + length - 1) / kPageBytes + 1);
}

}  // namespace pawl
