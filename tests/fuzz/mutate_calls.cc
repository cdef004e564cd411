// How a fuzzer changes a program of calls: call by call, so that what stands behind a change keeps
// its meaning.

#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzz/call.h"
#include "fuzz/fuzz_target.h"
#include "workload/random.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

namespace pawl::fuzz {
namespace {

using test::below;
using test::Random;
using Bytes = std::vector<std::uint8_t>;

class Mutation {
 public:
  Mutation(Bytes& program, std::size_t bytes_max, Random& random)
      : program_(program), bytes_max_(bytes_max), random_(random) {}

  void mutate() {
    switch (below(random_, 8)) {
      case 0:
        return change(0, kPrologueBytes);
      case 1:
        return remove();
      case 2:
      case 3:
        return insert_again();
      case 4:
        return insert_new();
      default:
        if (calls() > 0) change(any_call(), kCallBytes);
    }
  }

 private:
  std::size_t calls() const { return (program_.size() - kPrologueBytes) / kCallBytes; }
  // Where a call begins, or the end.
  std::size_t any_place() { return kPrologueBytes + kCallBytes * below(random_, calls() + 1); }
  std::size_t any_call() { return kPrologueBytes + kCallBytes * below(random_, calls()); }

  void change(std::size_t at, std::size_t count) {
    if (below(random_, 2) == 0)
      program_[at + below(random_, count)] = static_cast<std::uint8_t>(random_());
    else
      LLVMFuzzerMutate(program_.data() + at, count, count);
  }
  void remove() {
    if (calls() == 0) return;
    const std::size_t from = any_call();
    const std::size_t to = std::min(program_.size(), from + kCallBytes * (1 + below(random_, 4)));
    program_.erase(program_.begin() + static_cast<std::ptrdiff_t>(from),
                   program_.begin() + static_cast<std::ptrdiff_t>(to));
  }
  void insert(const Bytes& bytes) {
    if (program_.size() + bytes.size() > bytes_max_) return;
    program_.insert(program_.begin() + static_cast<std::ptrdiff_t>(any_place()), bytes.begin(),
                    bytes.end());
  }
  // What the program did elsewhere.
  void insert_again() {
    if (calls() == 0) return;
    const std::size_t from = any_call();
    const std::size_t count =
        std::min<std::size_t>(kCallBytes * (1 + below(random_, 4)), program_.size() - from) /
        kCallBytes * kCallBytes;
    insert(Bytes(program_.begin() + static_cast<std::ptrdiff_t>(from),
                 program_.begin() + static_cast<std::ptrdiff_t>(from + count)));
  }
  void insert_new() {
    Bytes call(kCallBytes);
    for (std::uint8_t& byte : call) byte = static_cast<std::uint8_t>(random_());
    insert(call);
  }

  Bytes& program_;
  const std::size_t bytes_max_;
  Random& random_;
};

}  // namespace
}  // namespace pawl::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t size_max, unsigned seed) {
  using namespace pawl::fuzz;
  if (size < kPrologueBytes || size_max < kPrologueBytes)
    return LLVMFuzzerMutate(data, size, size_max);
  pawl::test::Random random(seed);
  Bytes program(data, data + size);
  Mutation mutation(program, size_max, random);
  for (std::uint64_t count = 1 + random() % 3; count > 0; --count) mutation.mutate();
  std::memcpy(data, program.data(), program.size());
  return program.size();
}
