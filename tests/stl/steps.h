// One random operation on a container, the same on one in the heap and on its model; and the text
// of a container, by which the two are compared.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "random_value.h"

namespace stl_test {

template <class T>
void step(Random& random, T& value);

// A copy in the same memory as `beside`: containers of std::pmr would else take it from new, and
// must not be swapped or spliced with it then.
template <class T>
T copy_of(const T& container, const T& beside) {
  return T(container, beside.get_allocator());
}

template <Text T>
void step_text(Random& random, T& text) {
  const std::size_t at = random.below(text.size() + 1);
  switch (random.below(6)) {
    case 0:
      text.push_back('+');
      break;
    case 1: {
      const T more = random_value<T>(random);
      text.append(more.data(), more.size());
      break;
    }
    case 2:
      text.erase(at, random.below(kTextBytesMax));
      break;
    case 3: {
      const T more = random_value<T>(random);
      text.insert(at, more.data(), more.size());
      break;
    }
    case 4:
      text = random_value<T>(random);
      break;
    default:
      text.resize(random.below(2 * kTextBytesMax), '.');
      text.shrink_to_fit();
  }
}

template <class T>
void step_map(Random& random, T& map) {
  auto key = random_key<typename T::key_type>(random);
  switch (random.below(8)) {
    case 0:
      map.erase(key);
      break;
    case 1:
      if constexpr (!Multiple<T>) {
        const auto found = map.find(key);
        if (found != map.end()) step(random, found->second);
      }
      break;
    case 2:
      if constexpr (!Multiple<T>) {
        step(random, map[std::move(key)]);
        break;
      }
      [[fallthrough]];
    case 3: {
      T other = copy_of(map, map);
      other.emplace(std::move(key), random_value<typename T::mapped_type>(random));
      map = std::move(other);
      break;
    }
    case 4: {
      T other = copy_of(map, map);
      other.erase(key);
      using std::swap;
      swap(map, other);
      break;
    }
    default:
      map.emplace(std::move(key), random_value<typename T::mapped_type>(random));
  }
}

template <class T>
void step_set(Random& random, T& set) {
  auto key = random_key<typename T::key_type>(random);
  switch (random.below(4)) {
    case 0:
      set.erase(key);
      break;
    case 1: {
      T other = copy_of(set, set);
      other.insert(std::move(key));
      using std::swap;
      swap(set, other);
      break;
    }
    default:
      set.insert(std::move(key));
  }
}

inline constexpr std::size_t kSequenceMax = 100;

template <class T>
void step_sequence(Random& random, T& values) {
  using Value = typename T::value_type;
  const std::size_t index = random.below(values.size() + 1);
  const auto at = std::next(values.begin(), static_cast<std::ptrdiff_t>(index));
  const std::size_t action = random.below(9);
  if (values.size() > kSequenceMax) {
    values.erase(at, values.end());
    return;
  }
  switch (action) {
    case 0:
      if (at != values.end()) values.erase(at);
      break;
    case 1:
      values.insert(at, random_value<Value>(random));
      break;
    case 2:
      if (at != values.end()) step(random, *at);
      break;
    case 3:
      std::reverse(values.begin(), values.end());
      break;
    case 4:
      if constexpr (requires { values.sort(); })
        values.sort();
      else
        std::sort(values.begin(), values.end());
      break;
    case 5: {
      const Value value = random_value<Value>(random);
      values.insert(at, random.below(5), value);
      break;
    }
    case 6: {
      T other = copy_of(random_value<T>(random), values);
      if constexpr (requires { values.splice(at, other); }) {
        values.splice(at, other);
      } else {
        values.insert(at, std::make_move_iterator(other.begin()),
                      std::make_move_iterator(other.end()));
      }
      break;
    }
    case 7: {
      T other = copy_of(values, values);
      if (!other.empty()) other.pop_back();
      values = other;
      break;
    }
    default:
      values.push_back(random_value<Value>(random));
  }
}

template <class T>
void step_forward(Random& random, T& values) {
  switch (random.below(5)) {
    case 0:
      if (!values.empty()) values.pop_front();
      break;
    case 1:
      values.reverse();
      break;
    case 2:
      values.sort();
      break;
    default:
      values.push_front(random_value<typename T::value_type>(random));
  }
}

template <class T>
void step(Random& random, T& value) {
  if constexpr (Text<T>) {
    step_text(random, value);
  } else if constexpr (MapLike<T>) {
    random.below(200) == 0 ? value.clear() : step_map(random, value);
  } else if constexpr (SetLike<T>) {
    random.below(200) == 0 ? value.clear() : step_set(random, value);
  } else if constexpr (ForwardOnly<T>) {
    step_forward(random, value);
  } else if constexpr (Sequence<T>) {
    step_sequence(random, value);
  } else {
    value = random_value<T>(random);
  }
}

template <class T>
std::string text(const T& value);

template <class... T>
std::string text_of_each(const T&... values) {
  return "(" + ((text(values) + ",") + ... + ")");
}

template <class T>
std::string text(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(value);
  } else if constexpr (Text<T>) {
    return "'" + std::string(value.data(), value.size()) + "'";
  } else if constexpr (requires { value.first; }) {
    return text_of_each(value.first, value.second);
  } else if constexpr (kIs<T, std::tuple>) {
    return std::apply([](const auto&... each) { return text_of_each(each...); }, value);
  } else if constexpr (kIs<T, std::optional>) {
    return value ? text(*value) : "-";
  } else if constexpr (kIs<T, std::variant>) {
    return std::visit([](const auto& held) { return text(held); }, value);
  } else {
    std::vector<std::string> texts;
    for (const auto& element : value) texts.push_back(text(element));
    if constexpr (Unordered<T>) std::sort(texts.begin(), texts.end());
    std::string whole = "[";
    for (const std::string& one : texts) whole += one + ";";
    return whole + "]";
  }
}

}  // namespace stl_test
