// Random numbers that every process draws alike, and random values of any type that is composed of
// numbers, texts and containers: the same numbers give a type of the heap and its model of the
// standard library the same value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace stl_test {

// splitmix64
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  std::size_t below(std::size_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

template <class T>
concept Text = requires(T text) { text.c_str(); };
template <class T>
concept MapLike = requires { typename T::mapped_type; };
template <class T>
concept SetLike = requires { typename T::key_type; } && !MapLike<T>;
template <class T>
concept ForwardOnly = requires(T list) { list.before_begin(); };
template <class T>
concept Sequence = requires(T sequence) { sequence.push_back(*sequence.begin()); } && !Text<T>;
template <class T>
concept Unordered = requires { typename T::hasher; };
// Several elements of a key.
template <class T>
concept Multiple =
    requires(T c, typename T::value_type v) { requires !requires { c.insert(v).second; }; };

template <class T, template <class...> class Of>
inline constexpr bool kIs = false;
template <template <class...> class Of, class... T>
inline constexpr bool kIs<Of<T...>, Of> = true;
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t count>
inline constexpr bool kIsArray<std::array<T, count>> = true;

inline constexpr std::size_t kTextBytesMax = 100;  // well beyond what a string keeps inside
inline constexpr std::size_t kElementsMax = 4;     // of a container in a container
inline constexpr std::size_t kKeys = 60;

template <class T>
T text_of(std::size_t size, char of) {
  const std::string text(size, of);
  return T(text.data(), text.size());
}

// One of few keys, so that keys are met again; every other one is long.
template <class T>
T random_key(Random& random) {
  const std::size_t key = random.below(kKeys);
  if constexpr (Text<T>) {
    std::string text = std::to_string(key);
    if (key % 2 == 1) text += " is the number of this key, and it is odd";
    return T(text.data(), text.size());
  } else {
    return static_cast<T>(key);
  }
}

template <class T>
T random_value(Random& random);

template <class T, std::size_t... which>
T random_alternative(Random& random, std::index_sequence<which...>) {
  const std::size_t chosen = random.below(sizeof...(which));
  T value;
  ((which == chosen ? void(value.template emplace<which>(
                          random_value<std::variant_alternative_t<which, T>>(random)))
                    : void()),
   ...);
  return value;
}

template <class... T>
std::tuple<T...> random_tuple(Random& random, const std::tuple<T...>*) {
  return std::tuple<T...>{random_value<T>(random)...};
}

template <class T>
T random_value(Random& random) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(random.below(1000));
  } else if constexpr (Text<T>) {
    const std::size_t size = random.below(kTextBytesMax);
    return text_of<T>(size, static_cast<char>('a' + random.below(26)));
  } else if constexpr (kIs<T, std::pair>) {
    auto first = random_value<typename T::first_type>(random);
    auto second = random_value<typename T::second_type>(random);
    return T(std::move(first), std::move(second));
  } else if constexpr (kIs<T, std::tuple>) {
    return random_tuple(random, static_cast<const T*>(nullptr));
  } else if constexpr (kIs<T, std::optional>) {
    if (random.below(2) == 0) return std::nullopt;
    return random_value<typename T::value_type>(random);
  } else if constexpr (kIs<T, std::variant>) {
    return random_alternative<T>(random, std::make_index_sequence<std::variant_size_v<T>>());
  } else if constexpr (kIsArray<T>) {
    T values;
    for (auto& value : values) value = random_value<typename T::value_type>(random);
    return values;
  } else {
    T values;
    for (std::size_t left = random.below(kElementsMax + 1); left > 0; --left) {
      if constexpr (MapLike<T>) {
        auto key = random_key<typename T::key_type>(random);
        values.emplace(std::move(key), random_value<typename T::mapped_type>(random));
      } else if constexpr (SetLike<T>) {
        values.insert(random_key<typename T::key_type>(random));
      } else if constexpr (ForwardOnly<T>) {
        values.push_front(random_value<typename T::value_type>(random));
      } else {
        values.push_back(random_value<typename T::value_type>(random));
      }
    }
    return values;
  }
}

}  // namespace stl_test
