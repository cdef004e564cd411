// Pointers that would not survive the process, smuggled into a heap in ways that the compiler
// cannot see: verify() finds them.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "support.h"

namespace stl_test {
namespace {

class StrayPointers : public testing::Test {
 protected:
  // One word of the heap holds the address.
  void smuggle(const void* address) { heap.root<const void*>() = address; }
  long found() {
    return heap.verify([this](std::string_view text) { told_.append(text); });
  }

  pawl::test::TemporaryDirectory directory_;
  pawl::heap heap = open_heap(directory_ / "heap");
  std::string told_;
};

int of_the_program = 0;

struct Virtual {
  virtual ~Virtual() = default;
};

TEST_F(StrayPointers, NoneInSoundData) {
  auto& words = heap.root<pawl::unordered_map<pawl::string, pawl::vector<pawl::string>>>();
  auto& deque = heap.named<pawl::deque<pawl::string>>("deque");
  auto& set = heap.named<pawl::set<pawl::string>>("set");
  auto& of_pmr = heap.named<std::pmr::map<std::pmr::string, std::pmr::string>>("pmr");
  for (int i = 0; i < 1000; ++i) {
    const pawl::string text(std::to_string(i));
    words[text].assign(3, kLong);
    deque.push_back(text);
    set.insert(text);
    of_pmr.emplace(text, kLong);
  }
  heap.named<void*>("into the heap") = &words;
  heap.named<void*>("to its resource") = heap.resource();
  heap.named<void*>("null");
  EXPECT_EQ(found(), 0) << told_;
}

TEST_F(StrayPointers, ToTheStack) {
  const int on_the_stack = 0;
  smuggle(&on_the_stack);
  EXPECT_EQ(found(), 1);
  EXPECT_THAT(told_, testing::HasSubstr("stack"));
}

TEST_F(StrayPointers, ToMallocsMemory) {
  const std::unique_ptr<void, void (*)(void*)> memory(std::malloc(100), std::free);
  smuggle(memory.get());
  EXPECT_EQ(found(), 1);
}

TEST_F(StrayPointers, ToTheProgram) {
  smuggle(&of_the_program);
  EXPECT_EQ(found(), 1);
}

TEST_F(StrayPointers, ToAVirtualTable) {
  const Virtual object;
  void* table = nullptr;
  std::memcpy(&table, static_cast<const void*>(&object), sizeof table);
  smuggle(table);
  EXPECT_EQ(found(), 1);
}

TEST_F(StrayPointers, ToAFunction) {
  smuggle(reinterpret_cast<const void*>(&std::free));
  EXPECT_EQ(found(), 1);
}

TEST_F(StrayPointers, ToAnotherHeap) {
  pawl::heap other = open_heap(directory_ / "other");
  smuggle(other.make<long>());
  EXPECT_EQ(found(), 1);
}

// A class hides from the compiler what it has inside.
struct Hiding {
  std::unique_ptr<long> number = std::make_unique<long>(1);
};

TEST_F(StrayPointers, InsideOfAClass) {
  heap.root<pawl::map<long, Hiding>>()[1];
  EXPECT_EQ(found(), 1);
  heap.remove<pawl::map<long, Hiding>>("root");
}

TEST_F(StrayPointers, AHeapThatVerifiesIsNotSynced) {
  heap.close();
  heap = open_heap(directory_ / "verifying", {.verify = true});
  heap.root<const void*>();
  heap.sync();
  smuggle(this);
  try {
    heap.sync();
    ADD_FAILURE() << "synced";
  } catch (const pawl::error& failure) {
    EXPECT_EQ(failure.code(), std::errc::bad_address);
    EXPECT_EQ(failure.pawl_code(), PAWL_ERROR_STRAY_POINTERS);
  }
  smuggle(nullptr);
  heap.sync();
}

TEST_F(StrayPointers, AReporterMayThrow) {
  smuggle(this);
  EXPECT_THROW(heap.verify([](std::string_view) { throw std::runtime_error("enough"); }),
               std::runtime_error);
  EXPECT_EQ(heap.check(), 0);
}

}  // namespace
}  // namespace stl_test
