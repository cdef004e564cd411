// Typed roots, and what goes wrong: other types, other layouts, constructors that throw, a heap
// that is full, misuse, containers without a heap.
#include <cerrno>
#include <memory_resource>
#include <stdexcept>
#include <thread>

#include "support.h"

namespace stl_test {
namespace {

using testing::HasSubstr;
using Words = pawl::map<pawl::string, long>;

class Roots : public testing::Test {
 protected:
  std::uint64_t blocks() const { return heap.info().blocks_used; }
  void reopen() {
    heap.close();
    heap = open_heap(path_);
  }

  pawl::test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "heap";
  pawl::heap heap = open_heap(path_);
};

TEST_F(Roots, IsFoundAgainOrMade) {
  auto& words = heap.root<Words>();
  words["pawl"] = 7;
  EXPECT_EQ(&heap.root<Words>(), &words);
  heap.sync();
  reopen();
  EXPECT_EQ(&heap.root<Words>(), &words);
  EXPECT_EQ(heap.root<Words>().at("pawl"), 7);
}

TEST_F(Roots, HaveNames) {
  EXPECT_EQ(heap.find<long>("a"), nullptr);
  heap.named<long>("a", 3) += 1;
  heap.named<pawl::string>("b", kLong);
  EXPECT_EQ(*heap.find<long>("a"), 4);
  EXPECT_EQ(heap.named<long>("a", 100), 4);
  EXPECT_EQ(*heap.find<pawl::string>("b"), kLong);
  EXPECT_EQ(heap.info().named_roots, 2u);
  EXPECT_TRUE(heap.remove<pawl::string>("b"));
  EXPECT_FALSE(heap.remove<pawl::string>("b"));
  EXPECT_TRUE(heap.remove<long>("a"));
  EXPECT_EQ(blocks(), 0u);
}

struct Pair {
  long x;
  long y;
};

TEST_F(Roots, MayBeOfPlainTypes) {
  EXPECT_EQ(heap.root<long>(), 0);
  const auto& pair = heap.named<Pair>("pair", 1, 2);
  EXPECT_EQ(pair.x + pair.y, 3);
  struct alignas(1024) Aligned {
    long value = 5;
  };
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&heap.named<Aligned>("aligned")) % 1024, 0u);
}

TEST_F(Roots, KeepTheirType) {
  heap.named<Words>("words");
  const std::string text =
      text_thrown_by<pawl::error>([&] { heap.named<pawl::vector<long>>("words"); });
  EXPECT_THAT(text, HasSubstr("words"));
  EXPECT_THAT(text, HasSubstr("vector<long"));
  EXPECT_EQ(code_thrown_by([&] { heap.find<pawl::set<pawl::string>>("words"); }),
            PAWL_ERROR_ROOT_OF_OTHER_TYPE);
  EXPECT_EQ(code_thrown_by([&] { heap.remove<long>("words"); }), PAWL_ERROR_ROOT_OF_OTHER_TYPE);
  EXPECT_NO_THROW(heap.named<Words>("words"));
  EXPECT_NE(pawl::type_tag<long>(), pawl::type_tag<unsigned long>());
}

TEST_F(Roots, HaveNamesThatFit) {
  EXPECT_THROW(heap.named<pawl::string>("", kLong), pawl::error);
  EXPECT_THROW(heap.named<pawl::string>(std::string(PAWL_HEAP_NAME_MAX + 1, 'n'), kLong),
               pawl::error);
  EXPECT_THROW(heap.named<pawl::string>(std::string_view("a\0b", 3), kLong), pawl::error);
  EXPECT_NO_THROW(heap.named<pawl::string>(std::string(PAWL_HEAP_NAME_MAX, 'n'), kLong));
  EXPECT_EQ(blocks(), 2u);
}

struct Throwing {
  explicit Throwing(int after) : texts(3, pawl::string(kLong)) {
    if (after == 0) throw std::runtime_error("made to fail");
  }
  pawl::vector<pawl::string> texts;
};

TEST_F(Roots, AConstructorThatThrowsLeavesNothing) {
  EXPECT_THROW(heap.root<Throwing>(0), std::runtime_error);
  EXPECT_THROW(heap.make<Throwing>(0), std::runtime_error);
  auto& map = heap.named<pawl::map<long, Throwing>>("map");
  auto& list = heap.named<pawl::list<Throwing>>("list");
  auto& vector = heap.named<pawl::vector<Throwing>>("vector");
  vector.reserve(1);
  const std::uint64_t before = blocks();
  EXPECT_THROW(map.emplace(1, 0), std::runtime_error);
  EXPECT_THROW(list.emplace_back(0), std::runtime_error);
  EXPECT_THROW(vector.emplace_back(0), std::runtime_error);
  EXPECT_EQ(blocks(), before);
  EXPECT_EQ(heap.check(), 0);
  EXPECT_NO_THROW(heap.root<Throwing>(1));
  heap.sync();
}

TEST_F(Roots, RollbackTakesThemBack) {
  auto& words = heap.root<Words>();
  words["kept"] = 1;
  heap.sync();
  words["lost"] = 2;
  words.erase("kept");
  heap.named<pawl::string>("lost", kLong);
  heap.rollback();
  EXPECT_EQ(words.size(), 1u);
  EXPECT_EQ(words.at("kept"), 1);
  EXPECT_EQ(heap.find<pawl::string>("lost"), nullptr);
  EXPECT_EQ(heap.check(), 0);
}

TEST_F(Roots, TheResourceOutlivesRollbackAndReopening) {
  using Texts = std::pmr::vector<std::pmr::string>;
  heap.rollback();
  auto& texts = heap.root<Texts>();
  texts.emplace_back(kLong);
  heap.sync();
  heap.rollback();
  texts.emplace_back(kLong);
  heap.sync();
  const std::pmr::memory_resource* const before = heap.resource();
  reopen();
  EXPECT_EQ(heap.resource(), before);
  heap.root<Texts>().emplace_back(kLong);
  heap.rollback();
  EXPECT_EQ(heap.root<Texts>().size(), 2u);
  heap.remove<Texts>("root");
  EXPECT_EQ(blocks(), 0u);
  void* const aligned = heap.resource()->allocate(100, 256);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 256, 0u);
  heap.resource()->deallocate(aligned, 100, 256);
}

TEST_F(Roots, AHeapThatWasOpenedFromCHasAResourceToo) {
  heap.close();
  pawl_heap* const opened = pawl_heap_open(path_.c_str(), nullptr);
  ASSERT_NE(opened, nullptr) << pawl_last_error();
  {
    const std::pmr::polymorphic_allocator<long> memory = pawl::allocator<long>(opened);
    std::pmr::vector<long> numbers(memory);
    numbers.assign(100, 7);
    EXPECT_EQ(pawl_heap_of(numbers.data()), opened);
  }
  EXPECT_EQ(pawl_heap_close(opened), 0) << pawl_last_error();
}

TEST_F(Roots, AreMadeOnceByManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (int name = 0; name < 50; ++name) heap.named<pawl::string>(std::to_string(name), kLong);
      auto& own = heap.named<pawl::vector<pawl::string>>("of " + std::to_string(i));
      for (int left = 500; left > 0; --left) own.emplace_back(kLong);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(heap.info().named_roots, 54u);
  EXPECT_EQ(blocks(), 50u * 2 + 4u * 502);
  EXPECT_EQ(heap.check(), 0);
}

TEST_F(Roots, AnotherLayoutIsRefused) {
  heap.sync();
  heap.close();
  pawl_heap_options options;
  ASSERT_EQ(pawl_heap_options_init(&options), 0);
  options.layout = "another layout";
  EXPECT_EQ(pawl_heap_open(path_.c_str(), &options), nullptr);
  EXPECT_EQ(errno, ENOTSUP);
  EXPECT_THAT(pawl_last_error(), HasSubstr("another layout"));
  EXPECT_THAT(pawl_last_error(), HasSubstr("libstdc++"));
}

TEST_F(Roots, ErrorsSayWhy) {
  try {
    const pawl::heap again = open_heap(path_);
    ADD_FAILURE() << "opened twice";
  } catch (const pawl::error& failure) {
    EXPECT_EQ(failure.code(), std::errc::device_or_resource_busy);
    EXPECT_EQ(failure.pawl_code(), PAWL_ERROR_IN_USE);
    EXPECT_THAT(failure.what(), HasSubstr("heap"));
  }
  EXPECT_THROW(open_heap(directory_ / "not/there"), std::system_error);
}

TEST_F(Roots, AFullHeapIsBadAlloc) {
  heap.close();
  heap = open_heap(directory_ / "small", {.size_bytes_max = PAWL_HEAP_SIZE_MIN});
  auto& texts = heap.root<pawl::list<pawl::string>>();
  const auto fill = [&] {
    for (;;) texts.emplace_back(10000u, 'x');
  };
  EXPECT_NE(text_thrown_by<std::bad_alloc>(fill), "");
  EXPECT_NE(text_thrown_by<std::exception>(fill), "");
  try {
    fill();
  } catch (const pawl::out_of_memory& failure) {
    EXPECT_EQ(failure.pawl_code(), PAWL_ERROR_HEAP_FULL);
  }
  EXPECT_EQ(heap.check(), 0);
  heap.sync();
  const std::size_t size = texts.size();
  texts.clear();
  for (std::size_t left = size; left > 0; --left) texts.emplace_back(10000u, 'y');
  heap.sync();
  EXPECT_THROW(pawl::vector<long>().reserve(PTRDIFF_MAX / sizeof(long)), std::bad_alloc);
}

TEST_F(Roots, MisuseIsNotSynced) {
  heap.root<Words>()["kept"] = 1;
  heap.sync();
  pawl::allocator<long> memory(heap);
  long* const block = memory.allocate(1);
  memory.deallocate(block, 1);
  memory.deallocate(block, 1);
  heap.root<Words>()["lost"] = 1;
  try {
    heap.sync();
    ADD_FAILURE() << "synced";
  } catch (const pawl::error& failure) {
    EXPECT_EQ(failure.code().value(), EUCLEAN);
    EXPECT_EQ(failure.pawl_code(), PAWL_ERROR_SYNC_REFUSED);
  }
  heap.rollback();
  heap.root<Words>()["more"] = 1;
  heap.sync();
  EXPECT_EQ(heap.root<Words>().size(), 2u);
  EXPECT_THROW(heap.destroy(block), pawl::error);
}

pawl::map<long, long> made_before_main;  // NOLINT: it is what is tested

TEST_F(Roots, AStaticContainerHasNoHeap) {
  EXPECT_THAT(text_thrown_by<pawl::error>([] { made_before_main[1] = 1; }),
              HasSubstr("no heap was open"));
  EXPECT_TRUE(made_before_main.empty());
  const pawl::map<long, long> given({{1, 1}}, heap);
  EXPECT_THROW(made_before_main = given, pawl::error);
  EXPECT_EQ(made_before_main.get_allocator().handle(), nullptr);
}

TEST_F(Roots, AClosedHeapIsNoHeap) {
  auto text = std::make_unique<pawl::string>(kLong);
  heap.close();
  EXPECT_EQ(heap.handle(), nullptr);
  EXPECT_THAT(text_thrown_by<pawl::error>([&] { text->reserve(1000); }), HasSubstr("closed"));
  text.reset();
  EXPECT_THROW(pawl::string{kLong}, pawl::error);
  heap = open_heap(path_);
}

TEST_F(Roots, TheHeapMoves) {
  pawl_heap* const handle = heap.handle();
  pawl::heap moved = std::move(heap);
  EXPECT_EQ(moved.handle(), handle);
  moved.root<Words>()["x"] = 1;
  moved.sync();
  EXPECT_GT(moved.statistics().commits, 0u);
  heap = std::move(moved);
  EXPECT_EQ(heap.root<Words>().size(), 1u);
}

TEST_F(Roots, StringsAreFoundByStringsOfOtherAllocators) {
  auto& words = heap.root<Words>();
  words["pawl"] = 1;
  EXPECT_NE(words.find(std::string("pawl")), words.end());
  EXPECT_EQ(words.lower_bound(std::string("pax")), words.end());
  auto& hashed = heap.named<pawl::unordered_map<pawl::string, long>>("hashed");
  hashed["pawl"] = 1;
  EXPECT_NE(hashed.find(std::string("pawl")), hashed.end());
}

TEST_F(Roots, StringsAreFoundByViews) {
  auto& words = heap.root<Words>();
  words["pawl"] = 1;
  EXPECT_NE(words.find(std::string_view("pawl")), words.end());
  auto& hashed = heap.named<pawl::unordered_map<pawl::string, long>>("hashed");
  hashed["pawl"] = 1;
  const std::uint64_t before = blocks();
  EXPECT_NE(hashed.find(std::string_view("pawl")), hashed.end());
  EXPECT_EQ(hashed.find(std::string_view(kLong)), hashed.end());
  EXPECT_EQ(blocks(), before);
}

}  // namespace
}  // namespace stl_test
