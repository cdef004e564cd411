// What the tests of the C++ face share.
#pragma once

#include <string>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pawl/heap.hpp>

#include "support/temporary_directory.h"

namespace stl_test {

// Longer than what a string keeps inside.
inline constexpr const char* kLong = "a text that is much too long for a string to keep inside";

// A heap with a small journal, so that opening is quick.
inline pawl::heap open_heap(const std::string& path, pawl::heap_options options = {}) {
  pawl_options mapping;
  EXPECT_EQ(pawl_options_init(&mapping), 0);
  mapping.journal_size_bytes = std::uint64_t{1} << 20;
  options.mapping = &mapping;
  return pawl::heap(path, options);
}

// The text of what `call` throws, which must be an Error.
template <class Error, class Call>
std::string text_thrown_by(Call call) {
  try {
    call();
  } catch (const Error& failure) {
    return failure.what();
  }
  ADD_FAILURE() << "nothing is thrown";
  return {};
}

// The code of the pawl::error that `call` throws.
template <class Call>
int code_thrown_by(Call call) {
  try {
    call();
  } catch (const pawl::error& failure) {
    return failure.pawl_code();
  }
  ADD_FAILURE() << "nothing is thrown";
  return PAWL_ERROR_NONE;
}

}  // namespace stl_test
