#include "fase/direct_memory.h"

namespace pawl::fase {
namespace {

Observer* the_observer = nullptr;

}  // namespace

void observe(Observer* observer) { the_observer = observer; }
Observer* observer() { return the_observer; }

void DirectMemory::copy(std::byte* to, std::span<const std::byte> from) {
  memory_->copy(to, from);
  if (observer_ == nullptr) return;
  observer_->stored(to, from.size());
  observer_->flushed(to, from.size());
}

}  // namespace pawl::fase
