// The stores that can be had with and without Pawl, and with a protection of their own.
#pragma once

#include <vector>

#include "stores/kinds.h"

namespace pawl::bench {

struct Retrofit {
  const char* store;
  StoreKind (*synchronize)(Under under);
  StoreKind (*own_protection)();  // null: it has none
};

// Those whose library was there when this was built.
std::vector<Retrofit> retrofits();

}  // namespace pawl::bench
