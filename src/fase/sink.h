// Where a section that is executed again stores what went into volatile memory: nobody reads it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace pawl::fase {

class Sink {
 public:
  // Of the widest vectors: stores rely on what the compiler knows of the program's own address.
  static constexpr std::align_val_t kAlignment{64};

  // Room for that many bytes, until the next call.  Null: there is no memory for it.
  void* room(std::size_t bytes) {
    if (bytes <= bytes_) return memory_.get();
    memory_.reset();
    memory_.reset(::operator new(bytes, kAlignment, std::nothrow));
    bytes_ = memory_ == nullptr ? 0 : bytes;
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(void* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace pawl::fase
