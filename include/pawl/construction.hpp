// How elements are made in a persistent heap: what may not live there is refused by the compiler,
// and what takes an allocator is given the one of its container.  Included by pawl/allocator.hpp.
#ifndef PAWL_CONSTRUCTION_HPP
#define PAWL_CONSTRUCTION_HPP

#include <any>
#include <array>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stack>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

namespace pawl {

template <class T>
class allocator;

namespace detail {

template <class T, class = void>
struct has_allocator : std::false_type {};
template <class T>
struct has_allocator<T, std::void_t<typename T::allocator_type>> : std::true_type {};

// Types that hold pointers to what only this process has: code, or memory of new.
template <class T>
struct points_outside
    : std::bool_constant<(std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) ||
                         std::is_member_function_pointer_v<T>> {};
template <class T>
struct points_outside<std::function<T>> : std::true_type {};
template <>
struct points_outside<std::any> : std::true_type {};
template <class T>
struct points_outside<std::shared_ptr<T>> : std::true_type {};
template <class T>
struct points_outside<std::weak_ptr<T>> : std::true_type {};
template <class T>
struct points_outside<std::unique_ptr<T, std::default_delete<T>>> : std::true_type {};
template <>
struct points_outside<std::filesystem::path> : std::true_type {};  // a std::string inside
template <>
struct points_outside<std::exception_ptr> : std::true_type {};

template <class T>
constexpr void check_storable();

// What the standard library composes of other types is looked into.
template <class T>
struct parts {
  static constexpr void check() {}
};
template <class... T>
struct parts_of {
  static constexpr void check() { (check_storable<T>(), ...); }
};
template <class T, class U>
struct parts<std::pair<T, U>> : parts_of<T, U> {};
template <class... T>
struct parts<std::tuple<T...>> : parts_of<T...> {};
template <class... T>
struct parts<std::variant<T...>> : parts_of<T...> {};
template <class T>
struct parts<std::optional<T>> : parts_of<T> {};
template <class T, std::size_t count>
struct parts<std::array<T, count>> : parts_of<T> {};
template <class T, class Container>
struct parts<std::stack<T, Container>> : parts_of<Container> {};
template <class T, class Container>
struct parts<std::queue<T, Container>> : parts_of<Container> {};
template <class T, class Container, class Compare>
struct parts<std::priority_queue<T, Container, Compare>> : parts_of<Container, Compare> {};
// Containers check their elements where they make them; what orders these is a part of their own.
template <class K, class Compare, class Allocator>
struct parts<std::set<K, Compare, Allocator>> : parts_of<Compare> {};
template <class K, class Compare, class Allocator>
struct parts<std::multiset<K, Compare, Allocator>> : parts_of<Compare> {};
template <class K, class V, class Compare, class Allocator>
struct parts<std::map<K, V, Compare, Allocator>> : parts_of<Compare> {};
template <class K, class V, class Compare, class Allocator>
struct parts<std::multimap<K, V, Compare, Allocator>> : parts_of<Compare> {};
template <class K, class Hash, class Equal, class Allocator>
struct parts<std::unordered_set<K, Hash, Equal, Allocator>> : parts_of<Hash, Equal> {};
template <class K, class Hash, class Equal, class Allocator>
struct parts<std::unordered_multiset<K, Hash, Equal, Allocator>> : parts_of<Hash, Equal> {};
template <class K, class V, class Hash, class Equal, class Allocator>
struct parts<std::unordered_map<K, V, Hash, Equal, Allocator>> : parts_of<Hash, Equal> {};
template <class K, class V, class Hash, class Equal, class Allocator>
struct parts<std::unordered_multimap<K, V, Hash, Equal, Allocator>> : parts_of<Hash, Equal> {};

// Does not compile when T cannot live in a heap.  What a class of the program's has inside it
// cannot see; pawl::heap::verify finds that when the program runs.
template <class T>
constexpr void check_storable() {
  using plain = std::remove_cv_t<T>;
  static_assert(!std::is_polymorphic_v<plain>,
                "an object with virtual functions cannot live in a persistent heap: the table of "
                "its functions is somewhere else in the next run");
  static_assert(!points_outside<plain>::value,
                "this cannot live in a persistent heap: it points to code, or to memory of new, "
                "and both are gone in the next run");
  static_assert(!has_allocator<plain>::value || std::uses_allocator_v<plain, allocator<std::byte>>,
                "the memory of this container would lie outside of the persistent heap: take "
                "pawl::string, pawl::vector, ..., or one with pawl::allocator");
  parts<plain>::check();
}

// The heap in which this thread is constructing something, by its allocator's place; null for none.
// Members of classes that take no allocator are made in it, and not in the default heap.
// One for all libraries of the program, even those that hide their names.
__attribute__((visibility("default"))) inline thread_local void* scope_place = nullptr;

class scope {
 public:
  explicit scope(void* place) noexcept : outer_(std::exchange(scope_place, place)) {}
  ~scope() { scope_place = outer_; }
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

 private:
  void* outer_;
};

template <class T>
struct is_pair : std::false_type {};
template <class T, class U>
struct is_pair<std::pair<T, U>> : std::true_type {};
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_tuple : std::false_type {};
template <class... T>
struct is_tuple<std::tuple<T...>> : std::true_type {};

// What the standard library gives no allocator, or not to all that is inside: it is made of parts
// that were given it.
template <class T, class Allocator>
struct is_made_of_parts : is_pair<T> {};
template <class T, class Allocator>
struct is_made_of_parts<std::optional<T>, Allocator>
    : std::disjunction<std::uses_allocator<std::remove_cv_t<T>, Allocator>,
                       is_made_of_parts<std::remove_cv_t<T>, Allocator>> {};
template <class... T, class Allocator>
struct is_made_of_parts<std::tuple<T...>, Allocator>
    : std::disjunction<is_made_of_parts<std::remove_cv_t<T>, Allocator>...> {};

// The arguments, as a tuple, from which to construct a T that uses the allocator as far as it can:
// C++20's std::uses_allocator_construction_args, for C++17 too, and for optionals.
template <class T, class Allocator, class... Arguments>
constexpr auto construction_arguments(const Allocator& allocator, Arguments&&... arguments);

template <class Pair, class Allocator, class... First, class... Second>
constexpr auto pair_arguments(const Allocator& allocator, std::piecewise_construct_t,
                              std::tuple<First...> first, std::tuple<Second...> second) {
  return std::make_tuple(std::piecewise_construct,
                         std::apply(
                             [&allocator](auto&&... of_first) {
                               return construction_arguments<typename Pair::first_type>(
                                   allocator, std::forward<decltype(of_first)>(of_first)...);
                             },
                             std::move(first)),
                         std::apply(
                             [&allocator](auto&&... of_second) {
                               return construction_arguments<typename Pair::second_type>(
                                   allocator, std::forward<decltype(of_second)>(of_second)...);
                             },
                             std::move(second)));
}
template <class Pair, class Allocator>
constexpr auto pair_arguments(const Allocator& allocator) {
  return pair_arguments<Pair>(allocator, std::piecewise_construct, std::tuple<>(), std::tuple<>());
}
template <class Pair, class Allocator, class U, class V>
constexpr auto pair_arguments(const Allocator& allocator, U&& first, V&& second) {
  return pair_arguments<Pair>(allocator, std::piecewise_construct,
                              std::forward_as_tuple(std::forward<U>(first)),
                              std::forward_as_tuple(std::forward<V>(second)));
}
template <class Pair, class Allocator, class Other>
constexpr auto pair_arguments(const Allocator& allocator, Other&& other) {
  if constexpr (is_pair<std::remove_cv_t<std::remove_reference_t<Other>>>::value) {
    return pair_arguments<Pair>(allocator, std::get<0>(std::forward<Other>(other)),
                                std::get<1>(std::forward<Other>(other)));
  } else {
    return std::forward_as_tuple(std::forward<Other>(other));
  }
}

template <class Optional, class Allocator>
constexpr auto optional_arguments(const Allocator& /*allocator*/) {
  return std::tuple<>();
}
// By the rules of its constructors: an optional of its own type, a value, another optional.
template <class Optional, class Allocator, class First, class... Others>
constexpr auto optional_arguments(const Allocator& allocator, First&& first, Others&&... others) {
  using value = typename Optional::value_type;
  using given = std::remove_cv_t<std::remove_reference_t<First>>;
  if constexpr (std::is_same_v<given, std::in_place_t>) {
    return std::tuple_cat(
        std::tuple<std::in_place_t>(std::in_place),
        construction_arguments<value>(allocator, std::forward<Others>(others)...));
  } else if constexpr (sizeof...(Others) > 0 || std::is_same_v<given, std::nullopt_t>) {
    return std::forward_as_tuple(std::forward<First>(first), std::forward<Others>(others)...);
  } else if constexpr (!std::is_same_v<given, Optional> && std::is_constructible_v<value, First>) {
    return optional_arguments<Optional>(allocator, std::in_place, std::forward<First>(first));
  } else if constexpr (is_optional<given>::value) {
    if (!first.has_value()) return std::tuple<Optional>();
    return std::tuple<Optional>(std::make_from_tuple<Optional>(
        optional_arguments<Optional>(allocator, std::in_place, *std::forward<First>(first))));
  } else {
    return std::forward_as_tuple(std::forward<First>(first));
  }
}

template <class T, class Allocator, class... Arguments>
constexpr auto arguments_with_allocator(const Allocator& allocator, Arguments&&... arguments) {
  if constexpr (std::is_constructible_v<T, std::allocator_arg_t, const Allocator&, Arguments...>) {
    return std::tuple<std::allocator_arg_t, const Allocator&, Arguments&&...>(
        std::allocator_arg, allocator, std::forward<Arguments>(arguments)...);
  } else {
    static_assert(std::is_constructible_v<T, Arguments..., const Allocator&>,
                  "the allocator is given by itself, behind these arguments: leave it out of them; "
                  "without it they must be those of a constructor");
    return std::tuple<Arguments&&..., const Allocator&>(std::forward<Arguments>(arguments)...,
                                                        allocator);
  }
}

// The argument itself where the tuple gives the part the allocator; else the part, made with it.
template <class Part, class Allocator, class Argument>
constexpr decltype(auto) part_of_tuple(const Allocator& allocator, Argument&& argument) {
  using plain = std::remove_cv_t<Part>;
  if constexpr (is_made_of_parts<plain, Allocator>::value && std::is_move_constructible_v<plain>) {
    return std::make_from_tuple<plain>(
        construction_arguments<plain>(allocator, std::forward<Argument>(argument)));
  } else {
    return std::forward<Argument>(argument);
  }
}
template <class Tuple, class Allocator, class Given, std::size_t... index>
constexpr auto arguments_of_parts(const Allocator& allocator, Given&& given,
                                  std::index_sequence<index...>) {
  return std::tuple<std::allocator_arg_t, const Allocator&,
                    decltype(part_of_tuple<std::tuple_element_t<index, Tuple>>(
                        allocator, std::get<index>(std::forward<Given>(given))))...>(
      std::allocator_arg, allocator,
      part_of_tuple<std::tuple_element_t<index, Tuple>>(
          allocator, std::get<index>(std::forward<Given>(given)))...);
}

// Whether it is to be taken apart for the tuple: another tuple, or a pair.
template <class Tuple, class Given, class = void>
struct is_whole_tuple : std::false_type {};
template <class Tuple, class Given>
struct is_whole_tuple<Tuple, Given, std::void_t<decltype(std::tuple_size<Given>::value)>>
    : std::bool_constant<std::is_same_v<Tuple, Given> ||
                         ((is_tuple<Given>::value || is_pair<Given>::value) &&
                          std::tuple_size_v<Given> == std::tuple_size_v<Tuple> &&
                          std::tuple_size_v<Tuple> != 1)> {};

template <class Tuple, class Allocator, class... Arguments>
constexpr auto tuple_arguments(const Allocator& allocator, Arguments&&... arguments) {
  constexpr std::size_t size = std::tuple_size_v<Tuple>;
  constexpr auto indices = std::make_index_sequence<size>();
  constexpr bool is_whole =
      sizeof...(Arguments) == 1 &&
      (is_whole_tuple<Tuple, std::remove_cv_t<std::remove_reference_t<Arguments>>>::value && ...);
  if constexpr (is_whole) {
    return arguments_of_parts<Tuple>(allocator, std::forward<Arguments>(arguments)..., indices);
  } else if constexpr (sizeof...(Arguments) == size) {
    return arguments_of_parts<Tuple>(
        allocator, std::forward_as_tuple(std::forward<Arguments>(arguments)...), indices);
  } else {
    return arguments_with_allocator<Tuple>(allocator, std::forward<Arguments>(arguments)...);
  }
}

template <class T, class Allocator, class... Arguments>
constexpr auto construction_arguments(const Allocator& allocator, Arguments&&... arguments) {
  using plain = std::remove_cv_t<T>;
  if constexpr (is_pair<plain>::value) {
    return pair_arguments<plain>(allocator, std::forward<Arguments>(arguments)...);
  } else if constexpr (is_made_of_parts<plain, Allocator>::value && is_optional<plain>::value) {
    return optional_arguments<plain>(allocator, std::forward<Arguments>(arguments)...);
  } else if constexpr (is_made_of_parts<plain, Allocator>::value) {
    return tuple_arguments<plain>(allocator, std::forward<Arguments>(arguments)...);
  } else if constexpr (std::uses_allocator_v<plain, Allocator>) {
    return arguments_with_allocator<plain>(allocator, std::forward<Arguments>(arguments)...);
  } else {
    return std::forward_as_tuple(std::forward<Arguments>(arguments)...);
  }
}

// Constructs a T at `at` in the heap of the allocator.
template <class T, class Allocator, class... Arguments>
void construct(const Allocator& allocator, T* at, Arguments&&... arguments) {
  check_storable<T>();
  using plain = std::remove_cv_t<T>;
  void* const memory = const_cast<plain*>(at);
  if constexpr (is_made_of_parts<plain, Allocator>::value ||
                std::uses_allocator_v<plain, Allocator>) {
    const scope inside(allocator.place());
    ::new (memory) plain(std::make_from_tuple<plain>(
        construction_arguments<plain>(allocator, std::forward<Arguments>(arguments)...)));
  } else if constexpr (std::is_constructible_v<plain, Arguments...>) {
    const scope inside(allocator.place());
    ::new (memory) plain(std::forward<Arguments>(arguments)...);
  } else {
    const scope inside(allocator.place());
    ::new (memory) plain{std::forward<Arguments>(arguments)...};
  }
}

}  // namespace detail
}  // namespace pawl

#endif
