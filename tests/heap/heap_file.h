// A heap in a file of its own that a test opens, closes and opens again.
#pragma once

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "pawl/heap.h"
#include "support/temporary_directory.h"

namespace pawl::test {

class HeapFile {
 public:
  explicit HeapFile(std::uint64_t size_bytes_max, std::uint64_t journal_bytes = 1 << 20)
      : path_(directory_ / "test.heap") {
    EXPECT_EQ(pawl_heap_options_init(&options), 0);
    options.size_bytes_max = size_bytes_max;
    options.mapping.journal_size_bytes = journal_bytes;
  }
  HeapFile(const HeapFile&) = delete;
  HeapFile& operator=(const HeapFile&) = delete;
  ~HeapFile() {
    if (heap_ != nullptr) pawl_heap_close(heap_);
  }

  void open() {
    heap_ = pawl_heap_open(path_.c_str(), &options);
    ASSERT_NE(heap_, nullptr) << pawl_last_error();
  }
  void close() {
    ASSERT_EQ(pawl_heap_close(std::exchange(heap_, nullptr)), 0) << pawl_last_error();
  }
  pawl_heap* get() const { return heap_; }
  const std::string& path() const { return path_; }

  pawl_heap_options options;

 private:
  TemporaryDirectory directory_;
  const std::string path_;
  pawl_heap* heap_ = nullptr;
};

}  // namespace pawl::test
