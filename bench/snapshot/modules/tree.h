// A b-tree of order 8: nodes of up to 8 children and 7 pairs of 8-byte keys and values.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace pawl::bench {

// `Pool` allocates, frees, and commits; see pools.h.  Nodes are split on the way down, before there
// is a need, and filled up on the way down before something is taken from them.
template <class Pool>
class Tree {
 public:
  static constexpr int kOrder = 8;
  static constexpr int kPairsMax = kOrder - 1;
  static constexpr int kPairsMin = kOrder / 2 - 1;

  struct Pair {
    std::uint64_t key;
    std::uint64_t value;
  };
  struct Node {
    int count;
    Pair pairs[kPairsMax];
    Node* children[kOrder];  // all null in a leaf
  };
  struct Root {
    Node* node;
  };

  explicit Tree(Pool& pool) : pool_(pool), root_(static_cast<Root*>(pool.allocate(sizeof(Root)))) {
    root_->node = make_node();
  }

  void insert(std::uint64_t key, std::uint64_t value) {
    if (root_->node->count == kPairsMax) {
      Node* const above = make_node();
      above->children[0] = root_->node;
      root_->node = above;
      split(above, 0);
    }
    Node* node = root_->node;
    for (;;) {
      int at = place(node, key);
      if (at < node->count && node->pairs[at].key == key)
        throw std::runtime_error("the key is there already");
      if (node->children[0] == nullptr) {
        for (int i = node->count; i > at; --i) node->pairs[i] = node->pairs[i - 1];
        node->pairs[at] = {key, value};
        ++node->count;
        return;
      }
      if (node->children[at]->count == kPairsMax) {
        split(node, at);
        if (node->pairs[at].key < key) ++at;
      }
      node = node->children[at];
    }
  }

  std::uint64_t lookup(std::uint64_t key) const {
    for (const Node* node = root_->node; node != nullptr;) {
      const int at = place(node, key);
      if (at < node->count && node->pairs[at].key == key) return node->pairs[at].value;
      node = node->children[at];
    }
    throw std::runtime_error("the key is not there");
  }

  // The sum of all values.
  std::uint64_t walk() const { return walk(root_->node); }

  void erase(std::uint64_t key) {
    erase(root_->node, key);
    Node* const top = root_->node;
    if (top->count == 0 && top->children[0] != nullptr) {
      root_->node = top->children[0];
      pool_.release(top);
    }
  }

 private:
  Node* make_node() {
    auto* const node = static_cast<Node*>(pool_.allocate(sizeof(Node)));
    *node = {};
    return node;
  }
  // Of the first pair that is not before the key.
  static int place(const Node* node, std::uint64_t key) {
    int at = 0;
    while (at < node->count && node->pairs[at].key < key) ++at;
    return at;
  }
  static std::uint64_t walk(const Node* node) {
    std::uint64_t sum = 0;
    for (int i = 0; i < node->count; ++i) {
      if (node->children[i] != nullptr) sum += walk(node->children[i]);
      sum += node->pairs[i].value;
    }
    if (node->children[node->count] != nullptr) sum += walk(node->children[node->count]);
    return sum;
  }

  // The full child `at` gives its upper half to a new node after it, and its middle pair to `node`.
  void split(Node* node, int at) {
    Node* const lower = node->children[at];
    Node* const upper = make_node();
    upper->count = kPairsMin;
    for (int i = 0; i < kPairsMin; ++i) upper->pairs[i] = lower->pairs[i + kPairsMin + 1];
    for (int i = 0; i <= kPairsMin; ++i) upper->children[i] = lower->children[i + kPairsMin + 1];
    for (int i = node->count; i > at; --i) {
      node->pairs[i] = node->pairs[i - 1];
      node->children[i + 1] = node->children[i];
    }
    node->pairs[at] = lower->pairs[kPairsMin];
    node->children[at + 1] = upper;
    ++node->count;
    lower->count = kPairsMin;
  }

  // In `node`, which has more than the least number of pairs, or is the top.
  void erase(Node* node, std::uint64_t key) {
    const int at = place(node, key);
    const bool here = at < node->count && node->pairs[at].key == key;
    if (node->children[0] == nullptr) {
      if (!here) throw std::runtime_error("the key is not there");
      for (int i = at + 1; i < node->count; ++i) node->pairs[i - 1] = node->pairs[i];
      --node->count;
      return;
    }
    if (!here) {
      erase(filled(node, at), key);
      return;
    }
    if (node->children[at]->count > kPairsMin) {
      node->pairs[at] = last_of(node->children[at]);
      erase(node->children[at], node->pairs[at].key);
    } else if (node->children[at + 1]->count > kPairsMin) {
      node->pairs[at] = first_of(node->children[at + 1]);
      erase(node->children[at + 1], node->pairs[at].key);
    } else {
      merge(node, at);
      erase(node->children[at], key);
    }
  }
  static Pair last_of(const Node* node) {
    while (node->children[0] != nullptr) node = node->children[node->count];
    return node->pairs[node->count - 1];
  }
  static Pair first_of(const Node* node) {
    while (node->children[0] != nullptr) node = node->children[0];
    return node->pairs[0];
  }
  // The child `at`, after it was given a pair if it had the least number.
  Node* filled(Node* node, int at) {
    Node* const child = node->children[at];
    if (child->count > kPairsMin) return child;
    if (at > 0 && node->children[at - 1]->count > kPairsMin) {
      take_from_left(node, at);
      return child;
    }
    if (at < node->count && node->children[at + 1]->count > kPairsMin) {
      take_from_right(node, at);
      return child;
    }
    const int left = at < node->count ? at : at - 1;
    merge(node, left);
    return node->children[left];
  }
  static void take_from_left(Node* node, int at) {
    Node* const child = node->children[at];
    Node* const left = node->children[at - 1];
    for (int i = child->count; i > 0; --i) child->pairs[i] = child->pairs[i - 1];
    for (int i = child->count + 1; i > 0; --i) child->children[i] = child->children[i - 1];
    child->pairs[0] = node->pairs[at - 1];
    child->children[0] = left->children[left->count];
    ++child->count;
    node->pairs[at - 1] = left->pairs[left->count - 1];
    --left->count;
  }
  static void take_from_right(Node* node, int at) {
    Node* const child = node->children[at];
    Node* const right = node->children[at + 1];
    child->pairs[child->count] = node->pairs[at];
    child->children[child->count + 1] = right->children[0];
    ++child->count;
    node->pairs[at] = right->pairs[0];
    for (int i = 1; i < right->count; ++i) right->pairs[i - 1] = right->pairs[i];
    for (int i = 1; i <= right->count; ++i) right->children[i - 1] = right->children[i];
    --right->count;
  }
  // The children `at` and `at` + 1 and the pair between them become one node.
  void merge(Node* node, int at) {
    Node* const left = node->children[at];
    Node* const right = node->children[at + 1];
    left->pairs[left->count] = node->pairs[at];
    for (int i = 0; i < right->count; ++i) left->pairs[left->count + 1 + i] = right->pairs[i];
    for (int i = 0; i <= right->count; ++i)
      left->children[left->count + 1 + i] = right->children[i];
    left->count += right->count + 1;
    for (int i = at + 1; i < node->count; ++i) {
      node->pairs[i - 1] = node->pairs[i];
      node->children[i] = node->children[i + 1];
    }
    --node->count;
    pool_.release(right);
  }

  Pool& pool_;
  Root* root_;
};

}  // namespace pawl::bench
