#include "journal/page_pool.h"

namespace pawl {
namespace {

constexpr std::size_t kSlabPages = 64;

}  // namespace

PagePool::Page PagePool::take() {
  PageBuffer* page = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      slabs_.push_back(std::make_unique_for_overwrite<PageBuffer[]>(kSlabPages));
      free_.reserve(slabs_.size() * kSlabPages);
      for (std::size_t i = kSlabPages; i > 0; --i) free_.push_back(&slabs_.back()[i - 1]);
    }
    page = free_.back();
    free_.pop_back();
  }
  return Page(page, GiveBack{this});
}

void PagePool::give_back(PageBuffer* page) {
  const std::lock_guard lock(mutex_);
  free_.push_back(page);
}

}  // namespace pawl
