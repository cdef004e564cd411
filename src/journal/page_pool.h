// Pages of memory for the committed image.  Memory that was used once stays mapped and warm: a page
// fault costs more than the comparison that the page is for (measured: 16 changed pages a commit,
// 5 us with malloc's fresh memory).
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "journal/page_buffer.h"

namespace pawl {

class PagePool {
 public:
  using Page = std::shared_ptr<PageBuffer>;

  PagePool() = default;
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Uninitialised bytes.  The page comes back by itself; the pool must outlive it.  Any thread.
  Page take();

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  bool is_locked() const { return !std::unique_lock(mutex_, std::try_to_lock).owns_lock(); }

 private:
  struct GiveBack {
    PagePool* pool;
    void operator()(PageBuffer* page) const { pool->give_back(page); }
  };
  void give_back(PageBuffer* page);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<PageBuffer[]>> slabs_;
  std::vector<PageBuffer*> free_;
};

}  // namespace pawl
