// The standard library's containers with pawl::allocator.  Included by pawl/heap.hpp.
#ifndef PAWL_CONTAINERS_HPP
#define PAWL_CONTAINERS_HPP

#include <pawl/allocator.hpp>

#include <cstddef>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pawl {

template <class Char>
using basic_string = std::basic_string<Char, std::char_traits<Char>, allocator<Char>>;
using string = basic_string<char>;

template <class T>
using vector = std::vector<T, allocator<T>>;
template <class T>
using deque = std::deque<T, allocator<T>>;
template <class T>
using list = std::list<T, allocator<T>>;
template <class T>
using forward_list = std::forward_list<T, allocator<T>>;

namespace detail {

// The standard library compares strings of one allocator only; views of them know none.
template <class T>
constexpr const T& as_compared(const T& value) noexcept {
  return value;  // NOLINT(bugprone-return-const-ref-from-parameter): compared at once
}
template <class Char, class Traits, class Allocator>
constexpr std::basic_string_view<Char, Traits> as_compared(
    const std::basic_string<Char, Traits, Allocator>& text) noexcept {
  return text;
}

}  // namespace detail

// std::less<> and std::equal_to<>, by which strings of other allocators can be compared too.
struct less {
  using is_transparent = void;
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return std::less<>()(detail::as_compared(a), detail::as_compared(b));
  }
};
struct equal_to {
  using is_transparent = void;
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return std::equal_to<>()(detail::as_compared(a), detail::as_compared(b));
  }
};

// Their order is transparent: what can be compared with a key, such as a std::string_view or a
// std::string, finds it.
template <class K, class Compare = less>
using set = std::set<K, Compare, allocator<K>>;
template <class K, class Compare = less>
using multiset = std::multiset<K, Compare, allocator<K>>;
template <class K, class V, class Compare = less>
using map = std::map<K, V, Compare, allocator<std::pair<const K, V>>>;
template <class K, class V, class Compare = less>
using multimap = std::multimap<K, V, Compare, allocator<std::pair<const K, V>>>;

// std::hash, and a transparent one for strings (C++20 finds by std::string_view).  The library's
// functions are the same in every run, as they must be: buckets are part of the file.
template <class K>
struct hash : std::hash<K> {};
template <class Char, class Allocator>
struct hash<std::basic_string<Char, std::char_traits<Char>, Allocator>> {
  using is_transparent = void;
  // Not noexcept: by that the library knows to keep the hash beside each string.
  std::size_t operator()(std::basic_string_view<Char> text) const {
    return std::hash<std::basic_string_view<Char>>()(text);
  }
};

template <class K, class Hash = hash<K>, class Equal = equal_to>
using unordered_set = std::unordered_set<K, Hash, Equal, allocator<K>>;
template <class K, class Hash = hash<K>, class Equal = equal_to>
using unordered_multiset = std::unordered_multiset<K, Hash, Equal, allocator<K>>;
template <class K, class V, class Hash = hash<K>, class Equal = equal_to>
using unordered_map = std::unordered_map<K, V, Hash, Equal, allocator<std::pair<const K, V>>>;
template <class K, class V, class Hash = hash<K>, class Equal = equal_to>
using unordered_multimap =
    std::unordered_multimap<K, V, Hash, Equal, allocator<std::pair<const K, V>>>;

namespace detail {

// Where the memory cannot change hands the elements do.
template <class Container>
void swap_containers(Container& a, Container& b) {
  if (a.get_allocator() == b.get_allocator()) {
    a.swap(b);
    return;
  }
  Container of_a(std::move(a), b.get_allocator());
  Container of_b(std::move(b), a.get_allocator());
  a = std::move(of_b);
  b = std::move(of_a);
}

}  // namespace detail

// swap(a, b), as swaps of the standard library are called, finds these; they are right also for
// containers of different heaps.
template <class Char>
void swap(basic_string<Char>& a, basic_string<Char>& b) {
  detail::swap_containers(a, b);
}
template <class T>
void swap(vector<T>& a, vector<T>& b) {
  detail::swap_containers(a, b);
}
template <class T>
void swap(deque<T>& a, deque<T>& b) {
  detail::swap_containers(a, b);
}
template <class T>
void swap(list<T>& a, list<T>& b) {
  detail::swap_containers(a, b);
}
template <class T>
void swap(forward_list<T>& a, forward_list<T>& b) {
  detail::swap_containers(a, b);
}
template <class K, class C>
void swap(set<K, C>& a, set<K, C>& b) {
  detail::swap_containers(a, b);
}
template <class K, class C>
void swap(multiset<K, C>& a, multiset<K, C>& b) {
  detail::swap_containers(a, b);
}
template <class K, class V, class C>
void swap(map<K, V, C>& a, map<K, V, C>& b) {
  detail::swap_containers(a, b);
}
template <class K, class V, class C>
void swap(multimap<K, V, C>& a, multimap<K, V, C>& b) {
  detail::swap_containers(a, b);
}
template <class K, class H, class E>
void swap(unordered_set<K, H, E>& a, unordered_set<K, H, E>& b) {
  detail::swap_containers(a, b);
}
template <class K, class H, class E>
void swap(unordered_multiset<K, H, E>& a, unordered_multiset<K, H, E>& b) {
  detail::swap_containers(a, b);
}
template <class K, class V, class H, class E>
void swap(unordered_map<K, V, H, E>& a, unordered_map<K, V, H, E>& b) {
  detail::swap_containers(a, b);
}
template <class K, class V, class H, class E>
void swap(unordered_multimap<K, V, H, E>& a, unordered_multimap<K, V, H, E>& b) {
  detail::swap_containers(a, b);
}

}  // namespace pawl

#endif
