// What is done to a store, from a seed: the writer does it, and whoever looks afterwards knows what
// it did.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pawl::retrofit {

// What a store holds.  No key and no value has a tab or a line break in it.
using Model = std::map<std::string, std::string>;

struct Change {
  enum class Kind { set, append, remove } kind;
  std::string key;
  std::string value;
};

// The changes that one call of the store's own synchronising function makes durable.  One at a time
// for half of the operations, up to kChangesMax for the others: a kill among them must leave all or
// none.
using Operation = std::vector<Change>;
inline constexpr unsigned kChangesMax = 16;

// The same for the same seed and number.
Operation operation(unsigned long seed, unsigned long number);

void perform(const Operation& operation, Model& model);

// Records to begin with.
Model made_records(unsigned long count);

}  // namespace pawl::retrofit
