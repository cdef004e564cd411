// A linked list: appended to at its tail, shortened at its head, and walked.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace pawl::bench {

// `Pool` allocates, frees, and commits; see pools.h.
template <class Pool>
class List {
 public:
  struct Node {
    Node* next;
    std::uint64_t value;
  };
  struct Root {
    Node* head;
    Node* tail;
    std::uint64_t count;
  };

  explicit List(Pool& pool) : pool_(pool), root_(static_cast<Root*>(pool.allocate(sizeof(Root)))) {
    *root_ = {};
  }

  void append(std::uint64_t value) {
    auto* const node = static_cast<Node*>(pool_.allocate(sizeof(Node)));
    node->next = nullptr;
    node->value = value;
    (root_->tail == nullptr ? root_->head : root_->tail->next) = node;
    root_->tail = node;
    ++root_->count;
  }
  std::uint64_t remove_head() {
    Node* const node = root_->head;
    if (node == nullptr) throw std::runtime_error("the list is empty");
    const std::uint64_t value = node->value;
    root_->head = node->next;
    if (node->next == nullptr) root_->tail = nullptr;
    --root_->count;
    if (at_ == node) at_ = nullptr;
    pool_.release(node);
    return value;
  }
  std::uint64_t step() {
    at_ = at_ == nullptr || at_->next == nullptr ? root_->head : at_->next;
    if (at_ == nullptr) throw std::runtime_error("the list is empty");
    return at_->value;
  }

 private:
  Pool& pool_;
  Root* root_;
  Node* at_ = nullptr;
};

}  // namespace pawl::bench
