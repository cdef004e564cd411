// A mapping whose file loses its name, or nearly: it is closed as the last commit left it, and what
// was not committed goes on in memory, into the nameless file or into a mapping opened anew.

#include <algorithm>
#include <new>

#include "mapping/implementation.h"

namespace pawl {

Status Mapping::Implementation::step_aside_locked() {
  PAWL_TRY(usable());
  PAWL_TRY(take_pages(0, ~std::uint64_t{0}, left_));
  closed_.store(true);
  return end_journal();
}

Status Mapping::Implementation::put_in_base(std::uint64_t page,
                                            std::span<const std::byte> bytes) const {
  const std::uint64_t offset = page * kPageBytes;
  if (offset >= size_) return {};
  return medium_->base().write(offset,
                               bytes.first(std::min<std::uint64_t>(kPageBytes, size_ - offset)));
}

Status Mapping::Implementation::leave_in_base_locked() {
  PAWL_ASSERT(closed_.load());
  const auto put_all = [&]() -> Status {
    auto present = medium_->base().size();
    if (!present.ok()) return present.status();
    if (lowest_size_ < present.value()) PAWL_TRY(medium_->base().resize(lowest_size_));
    PAWL_TRY(medium_->base().resize(size_));
    std::array<std::byte, kPageBytes> bytes;
    for (const StoredLines& stored : left_) {
      PAWL_TRY(load_from_view(stored.page, 0, bytes));
      PAWL_TRY(put_in_base(stored.page, bytes));
    }
    for (const auto& [page, written] : outside_) PAWL_TRY(put_in_base(page, written->bytes));
    return {};
  };
  Status outcome = put_all();
  left_.clear();
  outside_.clear();
  view_.unmap();
  return outcome;
}

Status Mapping::Implementation::take_over_locked(Implementation& aside) {
  PAWL_ASSERT(aside.closed_.load() && !view_.mapped() && outside_.empty());
  try {
    PAWL_TRY(aside.keep_outside(aside.left_));
  } catch (const std::bad_alloc&) {
    return Status::no_memory("no memory for what is not committed");
  }
  PAWL_TRY(truncate_locked(std::min(aside.lowest_size_, size_)));
  PAWL_TRY(truncate_locked(aside.size_));
  outside_ = std::move(aside.outside_);
  aside.left_.clear();
  aside.view_.unmap();
  return {};
}

}  // namespace pawl
