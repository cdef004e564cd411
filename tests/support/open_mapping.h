// Opens mappings for tests: with small journals, watched, and crashed by being dropped.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "mapping/mapping.h"
#include "medium/block_medium.h"
#include "support/watched_medium.h"
#include "track/kernel_stores.h"

namespace pawl::test {

// Under a sanitizer read() comes from its library, and the archive's wrapper is left out unless
// asked for.
inline const bool kernel_stores_are_linked = [] {
  link_kernel_stores_io();
  link_kernel_stores_other();
  return true;
}();

inline Options options_for(ApplyChoice apply, TrackerChoice tracker = TrackerChoice::automatic) {
  Options options = Options::from_environment().value();
  options.journal_size_bytes = std::uint64_t{1} << 20;
  options.apply = apply;
  options.tracker = tracker;
  return options;
}

inline Result<std::unique_ptr<Mapping>> try_open(const std::string& path, const Options& options,
                                                 std::shared_ptr<Watch> watch = nullptr) {
  auto medium = open_block_medium(path, false);
  if (!medium.ok()) return medium.status();
  if (watch != nullptr)
    return Mapping::open(watched_medium(std::move(medium.value()), std::move(watch)), options);
  return Mapping::open(std::move(medium.value()), options);
}

// A mapping with a window over the whole of a file and some pages more.
class Opened {
 public:
  static constexpr std::size_t kWindowPages = 64;

  Opened(const std::string& path, const Options& options, std::shared_ptr<Watch> watch = nullptr) {
    auto opened = try_open(path, options, std::move(watch));
    if (!opened.ok()) {
      ADD_FAILURE() << opened.status().text();
      return;
    }
    mapping_ = std::move(opened.value());
    auto window =
        mapping_->map_window(nullptr, kWindowPages * kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
    if (!window.ok())
      ADD_FAILURE() << window.status().text();
    else
      bytes_ = window.value();
  }

  char* bytes() const { return bytes_; }
  Mapping* operator->() const { return mapping_.get(); }
  Status commit() const { return mapping_->commit(bytes_, kWindowPages * kPageBytes); }
  // As a crash of the process does: nothing is applied or closed.
  void crash() { mapping_.reset(); }

 private:
  std::unique_ptr<Mapping> mapping_;
  char* bytes_ = nullptr;
};

}  // namespace pawl::test
