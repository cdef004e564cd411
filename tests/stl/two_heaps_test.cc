// Two heaps at once: everything of a container lies in its heap, whichever way it came there.
#include <array>
#include <filesystem>
#include <list>
#include <memory>
#include <memory_resource>
#include <optional>
#include <tuple>
#include <utility>

#include "support.h"

namespace stl_test {
namespace {

// Takes no allocator.
struct Person {
  pawl::string name;
  pawl::vector<pawl::string> roles;
  std::array<pawl::string, 2> lines;
};

// As docs/heap.md says a heap is moved.
TEST(MovedHeap, TheProgramThatKnowsItsTypesMovesItsHeap) {
  using Stock = pawl::map<pawl::string, pawl::vector<pawl::string>>;
  const pawl::test::TemporaryDirectory directory;
  {
    pawl::heap from = open_heap(directory / "from");
    auto& stock = from.root<Stock>();
    for (int i = 0; i < 100; ++i)
      stock[pawl::string(kLong) + char('a' + i % 26)].emplace_back(kLong);
    from.sync();
    pawl::heap to = open_heap(directory / "to");
    to.root<Stock>(stock);
    to.sync();
  }
  ASSERT_TRUE(std::filesystem::remove(directory / "from"));
  pawl::heap moved = open_heap(directory / "to");
  EXPECT_EQ(moved.verify(), 0);
  EXPECT_EQ(moved.check(), 0);
  auto& stock = moved.root<Stock>();
  ASSERT_EQ(stock.size(), 26u);
  for (const auto& [name, lines] : stock) {
    EXPECT_EQ(pawl_heap_of(name.data()), moved.handle());
    for (const pawl::string& line : lines) EXPECT_EQ(line, kLong);
  }
  stock.clear();
  moved.sync();
}

// Misuse; but what it did was done to another file.
TEST(StaleContainer, AContainerThatOutlivedItsHeapFreedABlockOfAnother) {
  const pawl::test::TemporaryDirectory directory;
  constexpr std::size_t kBytes = 10'000;
  constexpr std::size_t kOffset = 16 << 20;
  pawl::heap_options options;
  options.size_bytes_max = std::uint64_t{1} << 30;
  {
    const pawl::heap there = open_heap(directory / "there", options);
    options.address = there.info().address + kOffset;
  }
  std::optional<pawl::heap> gone = open_heap(directory / "gone", options);
  auto stale = std::make_unique<pawl::vector<char>>(kBytes, 'x', *gone);
  const pawl::allocator<char> allocator = stale->get_allocator();
  gone.reset();
  pawl::heap there = open_heap(directory / "there");
  // There are blocks where the other one had its own.
  while (pawl_heap_malloc(there.handle(), kBytes) < allocator.place()) {
  }
  for (int i = 0; i < 2'000; ++i) pawl_heap_malloc(there.handle(), kBytes);
  const std::uint64_t blocks = there.info().blocks_used;
  EXPECT_EQ(allocator.handle(), nullptr);
  stale.reset();
  EXPECT_EQ(there.info().blocks_used, blocks);
  there.sync();
  pawl::allocator<char> again = allocator;
  EXPECT_THAT(text_thrown_by<pawl::error>([&] { again.allocate(1); }),
              testing::HasSubstr("closed"));
  EXPECT_EQ(code_thrown_by([&] { again.allocate(1); }), PAWL_ERROR_NO_HEAP);
}

class TwoHeaps : public testing::Test {
 protected:
  // The address of what a container has allocated lies in the heap.
  static void expect_in(const pawl::heap& heap, const void* address) {
    EXPECT_EQ(pawl_heap_of(address), heap.handle());
  }
  static void expect_in(const pawl::heap& heap, const pawl::string& text) {
    expect_in(heap, text.data());
  }
  void TearDown() override {
    EXPECT_EQ(first.check(), 0);
    EXPECT_EQ(second.check(), 0);
    first.sync();
    second.sync();
  }

  pawl::test::TemporaryDirectory directory_;
  pawl::heap first = open_heap(directory_ / "first");  // the default
  pawl::heap second = open_heap(directory_ / "second");
};

TEST_F(TwoHeaps, InnerContainersAreInTheHeapOfTheOuter) {
  using Inner = pawl::vector<pawl::map<pawl::string, pawl::string>>;
  for (pawl::heap* const heap : {&first, &second}) {
    auto& outer = heap->root<pawl::map<pawl::string, Inner>>();
    outer[pawl::string(kLong, *heap)].emplace_back()[pawl::string(kLong, *heap)] = kLong;
    outer.emplace(kLong + 1, 2).first->second[1].emplace(kLong, kLong);
    for (const auto& [name, inner] : outer) {
      expect_in(*heap, name);
      expect_in(*heap, &inner);
      expect_in(*heap, inner.data());
      for (const auto& map : inner) {
        for (const auto& [key, value] : map) {
          expect_in(*heap, key);
          expect_in(*heap, value);
        }
      }
    }
  }
}

TEST_F(TwoHeaps, WhatComesFromElsewhereIsCopied) {
  const pawl::string of_first(kLong, first);
  auto& texts = second.root<pawl::vector<pawl::string>>();
  texts.push_back(of_first);
  texts.push_back(pawl::string(of_first));
  texts.emplace_back(of_first);
  texts.insert(texts.begin(), 3, of_first);
  texts.resize(10, of_first);
  texts.at(9) = pawl::string(kLong, first);
  for (const pawl::string& text : texts) expect_in(second, text);
  auto& pairs =
      second.named<pawl::vector<std::pair<pawl::string, std::pair<long, pawl::string>>>>("pairs");
  pairs.emplace_back(of_first, std::make_pair(1, of_first));
  pairs.emplace_back(std::piecewise_construct, std::forward_as_tuple(10u, 'x'),
                     std::forward_as_tuple(1, of_first));
  const auto pair = pairs.front();
  pairs.push_back(pair);
  pairs.emplace_back();
  for (const auto& [text, inner] : pairs) expect_in(second, inner.second.data());
  auto& tuples = second.named<pawl::list<std::tuple<pawl::string, long>>>("tuples");
  tuples.emplace_back(of_first, 1);
  expect_in(second, std::get<0>(tuples.front()));
}

TEST_F(TwoHeaps, MembersOfAClassWithoutAllocatorAreInItsHeap) {
  auto& person = second.root<Person>();
  person.name = kLong;
  person.roles.emplace_back(kLong);
  person.lines[1] = kLong;
  expect_in(second, person.name);
  expect_in(second, person.roles.data());
  expect_in(second, person.roles[0]);
  expect_in(second, person.lines[1]);
  auto& people = second.named<pawl::map<long, Person>>("people");
  people[1].name = kLong;
  expect_in(second, people[1].name);
  Person* const made = second.make<Person>(Person{pawl::string(kLong, second), {}, {}});
  expect_in(second, made->name);
  second.destroy(made);
}

TEST_F(TwoHeaps, AnOptionalIsGivenTheHeap) {
  auto& texts = second.root<pawl::vector<std::optional<pawl::string>>>(1);
  texts[0].emplace(kLong, second);
  expect_in(second, *texts[0]);
}

// What is put into a container was made in the default heap, and its optionals left it there.
TEST_F(TwoHeaps, AnElementThatIsAnOptionalIsMadeInTheHeapOfItsContainer) {
  using Maybe = std::optional<pawl::string>;
  auto& texts = second.named<pawl::vector<Maybe>>("texts");
  const pawl::string kept(kLong);
  const Maybe maybe(kept);
  texts.push_back(kept);
  texts.push_back(pawl::string(kLong));
  texts.push_back(maybe);
  texts.push_back(Maybe(kept));
  texts.emplace_back(kept);
  texts.emplace_back(pawl::string(kLong));
  texts.emplace_back(maybe);
  texts.emplace_back(Maybe(kept));
  texts.emplace_back(std::in_place, kLong);
  texts.emplace_back(kLong);
  texts.emplace_back(std::optional<const char*>(kLong));
  texts.insert(texts.begin(), kept);
  for (const Maybe& text : texts) {
    EXPECT_EQ(text, kept);
    expect_in(second, *text);
  }
  const std::size_t size = texts.size();
  texts.emplace_back();
  texts.emplace_back(std::nullopt);
  texts.push_back(Maybe());
  for (std::size_t i = size; i < texts.size(); ++i) EXPECT_FALSE(texts[i].has_value());

  auto& map = second.named<pawl::map<long, Maybe>>("map");
  map.emplace(1, pawl::string(kLong));
  map.emplace(2, kept);
  map.emplace(3, Maybe(kept));
  map.insert({4, pawl::string(kLong)});
  map.insert_or_assign(5, pawl::string(kLong));
  map.try_emplace(6, kept);
  map.try_emplace(7, std::in_place, kLong);
  for (const auto& [number, text] : map) expect_in(second, *text);
  map[8].emplace(kLong, map.get_allocator());
  expect_in(second, *map[8]);
  EXPECT_EQ(second.verify(), 0);
}

TEST_F(TwoHeaps, OptionalsInsideOfElementsAreMadeInTheHeap) {
  using Maybe = std::optional<pawl::string>;
  using Pair = std::pair<Maybe, std::optional<std::pair<long, Maybe>>>;
  const auto made = [] { return Maybe(pawl::string(kLong)); };
  auto& pairs = second.named<pawl::vector<Pair>>("pairs");
  pairs.push_back(Pair(made(), std::pair<long, Maybe>(1, made())));
  pairs.emplace_back(made(), std::pair<long, Maybe>(1, made()));
  pairs.push_back(pairs.front());
  for (const Pair& pair : pairs) {
    expect_in(second, *pair.first);
    expect_in(second, *pair.second->second);
  }
  using Tuple = std::tuple<long, Maybe, std::pair<pawl::string, Maybe>, std::tuple<Maybe>>;
  const auto tuple = [&made] {
    return Tuple(1, made(), std::pair(pawl::string(kLong), made()), std::tuple(made()));
  };
  auto& tuples = second.named<pawl::vector<Tuple>>("tuples");
  const Tuple kept = tuple();
  tuples.push_back(tuple());
  tuples.push_back(kept);
  tuples.emplace_back(1, made(), std::pair(pawl::string(kLong), made()), std::tuple(made()));
  for (const Tuple& each : tuples) {
    EXPECT_EQ(each, kept);
    expect_in(second, *std::get<1>(each));
    expect_in(second, std::get<2>(each).first);
    expect_in(second, *std::get<2>(each).second);
    expect_in(second, *std::get<0>(std::get<3>(each)));
  }
  tuples.emplace_back();
  auto& twice = second.named<pawl::vector<std::optional<Maybe>>>("twice");
  twice.push_back(made());
  twice.emplace_back(std::optional<Maybe>(made()));
  twice.emplace_back(pawl::string(kLong));
  for (const auto& each : twice) expect_in(second, **each);
  twice.push_back(Maybe());
  EXPECT_TRUE(twice.back().has_value());
  twice.emplace_back(std::nullopt);
  EXPECT_FALSE(twice.back().has_value());
  auto& containers = second.named<pawl::vector<std::optional<pawl::map<long, Maybe>>>>("maps");
  pawl::map<long, Maybe> map;
  map.emplace(1, made());
  containers.push_back(std::move(map));
  expect_in(second, *containers[0]->at(1));
  EXPECT_EQ(second.verify(), 0);
}

// No allocator sees what is assigned into an optional that is there already.
TEST_F(TwoHeaps, VerifyFindsWhatWasAssignedIntoAnEmptyOptional) {
  auto& map = second.named<pawl::map<long, std::optional<pawl::string>>>("map");
  map[1] = pawl::string(kLong);
  EXPECT_NE(second.verify(), 0);
  map[1].reset();
  map[1].emplace(kLong, second);
  map[1] = pawl::string(kLong);
  expect_in(second, *map[1]);
  EXPECT_EQ(second.verify(), 0);
}

TEST_F(TwoHeaps, ContainersOfPmrAreInTheHeapOfTheOuter) {
  auto& texts = second.root<pawl::map<long, std::pmr::vector<std::pmr::string>>>();
  texts[1].emplace_back(kLong);
  expect_in(second, texts[1][0].data());
  EXPECT_EQ(texts[1].get_allocator().resource(), second.resource());
  EXPECT_NE(*first.resource(), *second.resource());
  auto& pure = second.named<std::pmr::map<std::pmr::string, std::pmr::string>>("pmr");
  pure[kLong] = kLong;
  expect_in(second, pure.begin()->first.data());
  expect_in(second, pure.begin()->second.data());
}

template <class Container>
struct OfTwo {
  OfTwo(pawl::heap& first, pawl::heap& second)
      : a(first.named<Container>(name())), b(second.named<Container>(name())) {}
  static std::string name() { return std::to_string(pawl::type_tag<Container>()); }
  Container& a;
  Container& b;
};

TEST_F(TwoHeaps, AMoveMovesTheElements) {
  OfTwo<pawl::map<pawl::string, pawl::vector<pawl::string>>> maps(first, second);
  maps.a[kLong].emplace_back(kLong);
  maps.b = std::move(maps.a);
  ASSERT_EQ(maps.b.size(), 1u);
  expect_in(second, maps.b.begin()->first);
  expect_in(second, maps.b.begin()->second[0]);
  OfTwo<pawl::unordered_map<pawl::string, pawl::string>> hashed(first, second);
  hashed.a[kLong] = kLong;
  hashed.b = std::move(hashed.a);
  expect_in(second, hashed.b.begin()->second);
  OfTwo<pawl::deque<pawl::string>> deques(first, second);
  deques.a.assign(100, kLong);
  deques.b = std::move(deques.a);
  for (const auto& text : deques.b) expect_in(second, text);
}

template <class Container>
void swap_both_ways(OfTwo<Container> of, const Container& for_a, const Container& for_b) {
  using std::swap;
  of.a = for_a;
  of.b = for_b;
  swap(of.a, of.b);
  EXPECT_TRUE(of.a == for_b);
  EXPECT_TRUE(of.b == for_a);
  swap(of.b, of.a);
  EXPECT_TRUE(of.a == for_a);
  EXPECT_TRUE(of.b == for_b);
  // In one heap it changes hands.
  Container beside(for_b, of.a.get_allocator());
  swap(of.a, beside);
  EXPECT_TRUE(of.a == for_b);
}

TEST_F(TwoHeaps, ASwapSwapsTheElements) {
  const auto swap_all = [&](const auto& a, const auto& b) {
    swap_both_ways(OfTwo<std::decay_t<decltype(a)>>(first, second), a, b);
  };
  const pawl::string x = kLong;
  const pawl::string y = "short";
  swap_all(x, y);
  swap_all(pawl::vector<pawl::string>{x, y, x}, pawl::vector<pawl::string>{y});
  swap_all(pawl::deque<pawl::string>{x, y}, pawl::deque<pawl::string>{});
  swap_all(pawl::list<pawl::string>{x, y}, pawl::list<pawl::string>{y});
  swap_all(pawl::forward_list<pawl::string>{x, y}, pawl::forward_list<pawl::string>{y});
  swap_all(pawl::set<pawl::string>{x, y}, pawl::set<pawl::string>{y});
  swap_all(pawl::multiset<pawl::string>{x, x}, pawl::multiset<pawl::string>{y});
  swap_all(pawl::map<pawl::string, pawl::string>{{x, y}}, pawl::map<pawl::string, pawl::string>{});
  swap_all(pawl::multimap<pawl::string, long>{{x, 1}, {x, 2}},
           pawl::multimap<pawl::string, long>{});
  swap_all(pawl::unordered_set<pawl::string>{x, y}, pawl::unordered_set<pawl::string>{y});
  swap_all(pawl::unordered_multiset<pawl::string>{x, x}, pawl::unordered_multiset<pawl::string>{y});
  swap_all(pawl::unordered_map<pawl::string, long>{{x, 1}},
           pawl::unordered_map<pawl::string, long>{});
  swap_all(pawl::unordered_multimap<pawl::string, long>{{x, 1}, {x, 2}},
           pawl::unordered_multimap<pawl::string, long>{});
}

// It could only exchange the memory.
TEST_F(TwoHeaps, AMemberSwapIsRefused) {
  OfTwo<pawl::vector<long>> vectors(first, second);
  EXPECT_DEATH(vectors.a.swap(vectors.b), "swap.. of containers of different heaps");
  OfTwo<pawl::string> texts(first, second);
  EXPECT_DEATH(texts.a.swap(texts.b), "swap.. of containers of different heaps");
  pawl::map<long, long> of_first(first);
  pawl::map<long, long> of_second(second);
  of_first[1] = 1;
  EXPECT_DEATH(of_first.swap(of_second), "swap.. of containers of different heaps");
  // As those find it that let exceptions pass.
  pawl::allocator<long> one(first);
  pawl::allocator<long> other(second);
  EXPECT_EQ(code_thrown_by([&] { swap(one, other); }), PAWL_ERROR_DIFFERENT_HEAPS);
}

TEST_F(TwoHeaps, ACopyIsMadeInTheSameHeap) {
  const auto& texts = second.root<pawl::vector<pawl::string>>(3u, kLong);
  const pawl::vector<pawl::string> copy = texts;
  expect_in(second, copy[0]);
  const pawl::vector<pawl::string> elsewhere(texts, first);
  expect_in(first, elsewhere[0]);
}

TEST_F(TwoHeaps, TheDefaultIsTheFirstOneOpen) {
  expect_in(first, pawl::string(kLong));
  ASSERT_EQ(pawl_heap_set_default(second.handle()), 0);
  expect_in(second, pawl::string(kLong));
  ASSERT_EQ(pawl_heap_set_default(first.handle()), 0);
}

}  // namespace
}  // namespace stl_test
