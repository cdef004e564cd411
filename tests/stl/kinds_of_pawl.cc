// The containers that pawl/heap.hpp names, single and nested.
#include "play.h"

namespace stl_test {
namespace {

// The same type twice: with pawl's containers, and with the standard library's.
struct Std {
  template <class T>
  using vector = std::vector<T>;
  template <class T>
  using deque = std::deque<T>;
  template <class T>
  using list = std::list<T>;
  template <class T>
  using forward_list = std::forward_list<T>;
  template <class K>
  using set = std::set<K>;
  template <class K>
  using multiset = std::multiset<K>;
  template <class K>
  using unordered_set = std::unordered_set<K>;
  template <class K, class V>
  using map = std::map<K, V>;
  template <class K, class V>
  using multimap = std::multimap<K, V>;
  template <class K, class V>
  using unordered_map = std::unordered_map<K, V>;
  using string = std::string;
};
struct Pawl {
  template <class T>
  using vector = pawl::vector<T>;
  template <class T>
  using deque = pawl::deque<T>;
  template <class T>
  using list = pawl::list<T>;
  template <class T>
  using forward_list = pawl::forward_list<T>;
  template <class K>
  using set = pawl::set<K>;
  template <class K>
  using multiset = pawl::multiset<K>;
  template <class K>
  using unordered_set = pawl::unordered_set<K>;
  template <class K, class V>
  using map = pawl::map<K, V>;
  template <class K, class V>
  using multimap = pawl::multimap<K, V>;
  template <class K, class V>
  using unordered_map = pawl::unordered_map<K, V>;
  using string = pawl::string;
};

template <class Of>
struct Types {
  using string = typename Of::string;
  using vector_of_numbers = typename Of::template vector<long>;
  using vector_of_strings = typename Of::template vector<string>;
  using deque = typename Of::template deque<string>;
  using list = typename Of::template list<string>;
  using forward_list = typename Of::template forward_list<string>;
  using set = typename Of::template set<string>;
  using multiset = typename Of::template multiset<long>;
  using unordered_set = typename Of::template unordered_set<string>;
  using map = typename Of::template map<string, string>;
  using multimap = typename Of::template multimap<string, string>;
  using unordered_map = typename Of::template unordered_map<string, string>;
  using unordered_map_of_numbers = typename Of::template unordered_map<long, long>;
  using nested = typename Of::template map<
      string, typename Of::template vector<typename Of::template map<string, string>>>;
  using nested_unordered = typename Of::template unordered_map<
      long, typename Of::template deque<typename Of::template list<string>>>;
  using tuples =
      typename Of::template map<string,
                                std::tuple<long, string, typename Of::template vector<string>>>;
  using composed = typename Of::template map<
      long, std::tuple<std::optional<string>, std::pair<string, std::array<string, 2>>>>;
  using variants = typename Of::template vector<
      std::variant<long, string, typename Of::template vector<string>>>;
  using optionals = typename Of::template list<std::optional<string>>;
};

#define KIND(name) {#name, play<Types<Pawl>::name, Types<Std>::name>}

}  // namespace

Kinds kinds_of_pawl() {
  return {KIND(string),
          KIND(vector_of_numbers),
          KIND(vector_of_strings),
          KIND(deque),
          KIND(list),
          KIND(forward_list),
          KIND(set),
          KIND(multiset),
          KIND(unordered_set),
          KIND(map),
          KIND(multimap),
          KIND(unordered_map),
          KIND(unordered_map_of_numbers),
          KIND(nested),
          KIND(nested_unordered),
          KIND(tuples),
          KIND(composed),
          KIND(variants),
          KIND(optionals)};
}

}  // namespace stl_test
