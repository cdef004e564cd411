// What a program sees of a file under failure-atomic msync(), and what a crash leaves of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "medium/page_runs.h"
#include "workload/content.h"

namespace pawl::test {

class FileModel {
 public:
  // Of the file's pages, the first `window_pages` are shown in memory; the others are written by
  // calls, and go with each commit.
  FileModel(Content initial, std::uint64_t window_pages)
      : now_(std::move(initial)), committed_(now_), window_{0, window_pages} {}

  const Content& now() const { return now_; }
  const Content& committed() const { return committed_; }
  std::uint64_t size() const { return now_.size(); }

  // Other pages are shown from now on, or none.  What the program changed in the old ones stays.
  void show(const PageRun& window) { window_ = window; }

  void write(std::uint64_t offset, std::span<const std::byte> bytes) { now_.write(offset, bytes); }
  void truncate(std::uint64_t size_bytes) {
    now_.resize(size_bytes);
    lowest_size_ = std::min(lowest_size_, size_bytes);
  }

  // What a commit of some of the window's pages makes of the file.
  Content after_commit(const PageRun& pages) const {
    Content after = cut();
    const std::uint64_t file_pages = (now_.size() + kPageBytes - 1) / kPageBytes;
    for (std::uint64_t page = 0; page < file_pages; ++page) {
      const bool taken = page >= pages.first && page < pages.end();
      const bool shown = page >= window_.first && page < window_.end();
      if (taken || !shown) after.copy_page(now_, page);
    }
    return after;
  }
  void commit(Content after) {
    committed_ = std::move(after);
    lowest_size_ = now_.size();
  }

  void roll_back() { restart(committed_); }
  void roll_back(const PageRun& pages) {
    const Content before = cut();
    for (std::uint64_t page = pages.first; page < pages.end(); ++page) now_.copy_page(before, page);
  }
  // The program was started anew and found this.
  void restart(Content found) {
    committed_ = std::move(found);
    now_ = committed_;
    lowest_size_ = now_.size();
  }

 private:
  // The committed bytes with the size of now: what was cut off since is zeros.
  Content cut() const {
    Content cut = committed_;
    cut.resize(std::min(cut.size(), lowest_size_));
    cut.resize(now_.size());
    return cut;
  }

  Content now_;
  Content committed_;
  PageRun window_;
  std::uint64_t lowest_size_ = now_.size();  // since the last commit
};

}  // namespace pawl::test
