// The values that commands work on, and the families of commands.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "commands.h"
#include "store.h"

namespace kv {

std::span<const Command> string_commands();
std::span<const Command> key_commands();
std::span<const Command> hash_commands();
std::span<const Command> list_commands();
std::span<const Command> set_commands();
std::span<const Command> sorted_set_commands();
std::span<const Command> sorted_set_range_commands();

// The value of a key that is a T; null when there is none.
template <class T>
T* find_value(Call& call, std::string_view key) {
  Store::Node* node = call.store.find(key, call.now_ms);
  if (node == nullptr) return nullptr;
  if constexpr (std::is_same_v<T, String>) {
    if (auto* string = std::get_if<String>(&node->second.value)) return string;
  } else {
    if (auto* box = std::get_if<Box<T>>(&node->second.value)) return &**box;
  }
  throw_wrong_type();
}

// The same of an existing or new key.
template <class T>
T& obtain_value(Call& call, std::string_view key) {
  if (T* value = find_value<T>(call, key)) return *value;
  Value& value = call.store.insert(key).second.value;
  if constexpr (std::is_same_v<T, String>) {
    return std::get<String>(value);
  } else {
    return *value.emplace<Box<T>>();
  }
}

// Erases a key, which exists.
inline void erase_key(Call& call, std::string_view key) {
  call.store.erase(*call.store.find(key, call.now_ms));
}

}  // namespace kv
