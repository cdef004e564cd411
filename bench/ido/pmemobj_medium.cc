#include "ido/pmemobj_medium.h"

#include <cstdlib>

#include "ido/subject.h"
#include "snapshot/modules/pmem_latency.h"

namespace {

std::uint64_t number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

}  // namespace

extern "C" {

void pmemobj_medium_begin(void) {
  pawl::bench::set_pmem_latency(number_of("PAWL_EMULATE_LINE_NS"),
                                number_of("PAWL_EMULATE_FENCE_NS"));
}

// What it logs is not told from what it stores.
struct subject_counts subject_count(struct subject*) {
  const pawl::bench::MediumUse use = pawl::bench::pmem_use();
  return {use.fences, use.lines, 0};
}

}  // extern "C"
