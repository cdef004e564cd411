// The stores that can be had with and without Pawl, and as they are used otherwise.
#pragma once

#include <vector>

#include "stores/kinds.h"

namespace pawl::bench {

struct Retrofit {
  const char* store;
  StoreKind (*synchronize)(Under under);
  StoreKind (*otherwise)();  // with its own protection, or as it comes; null: neither
};

// In a file beside this one: no store by itself.
StoreKind boost_synchronize_kind(Under under);
StoreKind boost_flush_kind();

// Those whose library was there when this was built.
std::vector<Retrofit> retrofits();

}  // namespace pawl::bench
