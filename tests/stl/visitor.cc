// visitor HEAP: checks what the visitors before have left in the heap, and leaves something; prints
// how many there were.  Built by several compilers for one heap: see check_compilers.sh.
#include <iostream>
#include <memory_resource>
#include <pawl/heap.hpp>

// The old ABI of libstdc++ has none in std::pmr.
#if _GLIBCXX_USE_CXX11_ABI
using OfPmr = std::pmr::map<std::pmr::string, long>;
#else
using OfPmr = pawl::map<pawl::string, long>;
#endif

struct Visit {
  pawl::string text;
  std::pair<char, double> numbers;
  std::optional<pawl::string> maybe;
  std::variant<long, pawl::string> either;
};

struct Book {
  pawl::map<pawl::string, pawl::vector<long>> tree;
  pawl::unordered_map<pawl::string, pawl::deque<pawl::string>> hashed;
  pawl::unordered_set<long> numbers;
  pawl::list<std::tuple<pawl::string, char, long>> list;
  pawl::multiset<double> sorted;
  pawl::forward_list<pawl::string> forward;
  pawl::vector<bool> bits;
  pawl::vector<Visit> visits;
};

pawl::string text_of(long number) {
  return pawl::string(std::to_string(number)) +
         (number % 2 == 0 ? "" : " is the odd number of a visit");
}

bool whole(const Book& book, const OfPmr& of_pmr) {
  const long count = static_cast<long>(book.visits.size());
  const auto size = book.visits.size();
  if (book.tree.size() != size || book.hashed.size() != size || book.numbers.size() != size ||
      book.list.size() != size || book.sorted.size() != size || book.bits.size() != size ||
      of_pmr.size() != size || std::distance(book.forward.begin(), book.forward.end()) != count)
    return false;
  auto in_list = book.list.begin();
  for (long number = 0; number < count; ++number, ++in_list) {
    const pawl::string text = text_of(number);
    const Visit& visit = book.visits[static_cast<std::size_t>(number)];
    if (visit.text != text || visit.numbers.second != static_cast<double>(number) ||
        visit.maybe != text || std::get<pawl::string>(visit.either) != text ||
        book.tree.at(text).at(0) != number || book.hashed.at(text).at(99) != text ||
        book.numbers.count(number) != 1 || std::get<2>(*in_list) != number ||
        book.sorted.count(static_cast<double>(number)) != 1 ||
        book.bits[static_cast<std::size_t>(number)] != (number % 3 == 0) ||
        of_pmr.at(OfPmr::key_type(text)) != number)
      return false;
  }
  return true;
}

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  pawl::heap heap(argv[1]);
  auto& book = heap.root<Book>();
  auto& of_pmr = heap.named<OfPmr>("pmr");
  if (heap.check() != 0 || !whole(book, of_pmr)) {
    std::cerr << "the heap is not as it was left\n";
    return 1;
  }
  const long number = static_cast<long>(book.visits.size());
  const pawl::string text = text_of(number);
  book.tree[text].push_back(number);
  book.hashed[text].assign(100, text);
  book.numbers.insert(number);
  book.list.emplace_back(text, 'x', number);
  book.sorted.insert(static_cast<double>(number));
  book.forward.push_front(text);
  book.bits.push_back(number % 3 == 0);
  book.visits.push_back({text, {'x', static_cast<double>(number)}, text, text});
  of_pmr.emplace(text, number);
  heap.sync();
  std::cout << number << '\n';
  return 0;
} catch (const std::exception& failure) {
  std::cerr << failure.what() << '\n';
  return 3;
}
