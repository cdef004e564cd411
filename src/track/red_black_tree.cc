#include "track/red_black_tree.h"

#include <utility>

#include "pawl/store.h"
#include "track/store_marks.h"

namespace pawl {

namespace {

using Node = std::_Rb_tree_node_base;

enum class Side { left, right };
constexpr Side opposite(Side side) { return side == Side::left ? Side::right : Side::left; }

void changed(const Node* node) {
  if (in_store_region(node)) pawl_stored(node, sizeof *node);
}

Node* child(const Node* node, Side side) {
  return side == Side::left ? node->_M_left : node->_M_right;
}
void set_child(Node* node, Side side, Node* to) {
  (side == Side::left ? node->_M_left : node->_M_right) = to;
  changed(node);
}
void set_parent(Node* node, Node* to) {
  node->_M_parent = to;
  changed(node);
}
void set_color(Node* node, std::_Rb_tree_color color) {
  if (node->_M_color == color) return;
  node->_M_color = color;
  changed(node);
}
// A place without a node is black.
bool is_red(const Node* node) { return node != nullptr && node->_M_color == std::_S_red; }
Side side_of(const Node* node) {
  return node->_M_parent->_M_left == node ? Side::left : Side::right;
}

Node* lowest(Node* node, Side side) {
  while (child(node, side) != nullptr) node = child(node, side);
  return node;
}

// Whatever leads from above to `node` leads to `by` instead.
void replace(Node* node, Node* by, Node& header) {
  Node* const parent = node->_M_parent;
  if (header._M_parent == node)
    set_parent(&header, by);
  else
    set_child(parent, side_of(node), by);
  if (by != nullptr) set_parent(by, parent);
}

// The node goes down to the given side, and its other child comes into its place.
void rotate(Node* node, Side down, Node& header) {
  Node* const riser = child(node, opposite(down));
  Node* const inner = child(riser, down);
  replace(node, riser, header);
  set_child(node, opposite(down), inner);
  if (inner != nullptr) set_parent(inner, node);
  set_child(riser, down, node);
  set_parent(node, riser);
}

// `node` is red, and its parent may be.
void balance_red(Node* node, Node& header) {
  while (node != header._M_parent && is_red(node->_M_parent)) {
    Node* parent = node->_M_parent;
    Node* const grandparent = parent->_M_parent;  // there is one: the root is black
    const Side side = side_of(parent);
    Node* const uncle = child(grandparent, opposite(side));
    if (is_red(uncle)) {
      set_color(parent, std::_S_black);
      set_color(uncle, std::_S_black);
      set_color(grandparent, std::_S_red);
      node = grandparent;
      continue;
    }
    if (side_of(node) != side) {
      rotate(parent, side, header);
      std::swap(node, parent);
    }
    set_color(parent, std::_S_black);
    set_color(grandparent, std::_S_red);
    rotate(grandparent, opposite(side), header);
    break;
  }
  set_color(header._M_parent, std::_S_black);
}

// On the given side of `parent`, where `node` stands or none does, a black node is missing.
void balance_missing_black(Node* node, Node* parent, Side side, Node& header) {
  while (node != header._M_parent && !is_red(node)) {
    Node* sibling = child(parent, opposite(side));  // there is one: its side is the higher
    if (is_red(sibling)) {
      set_color(sibling, std::_S_black);
      set_color(parent, std::_S_red);
      rotate(parent, side, header);
      sibling = child(parent, opposite(side));
    }
    Node* const near = child(sibling, side);
    Node* const far = child(sibling, opposite(side));
    if (is_red(near) || is_red(far)) {
      if (!is_red(far)) {
        set_color(near, std::_S_black);
        set_color(sibling, std::_S_red);
        rotate(sibling, opposite(side), header);
        sibling = near;
      }
      set_color(sibling, parent->_M_color);
      set_color(parent, std::_S_black);
      set_color(child(sibling, opposite(side)), std::_S_black);
      rotate(parent, side, header);
      return;
    }
    set_color(sibling, std::_S_red);
    node = parent;
    if (node == header._M_parent) break;
    parent = node->_M_parent;
    side = side_of(node);
  }
  if (node != nullptr) set_color(node, std::_S_black);
}

}  // namespace

void red_black_insert(bool left, Node* node, Node* parent, Node& header) {
  node->_M_parent = parent;
  node->_M_left = nullptr;
  node->_M_right = nullptr;
  node->_M_color = std::_S_red;
  changed(node);
  if (parent == &header) {
    header._M_parent = header._M_left = header._M_right = node;
    changed(&header);
  } else {
    set_child(parent, left ? Side::left : Side::right, node);
    if (left && parent == header._M_left) set_child(&header, Side::left, node);
    if (!left && parent == header._M_right) set_child(&header, Side::right, node);
  }
  balance_red(node, header);
}

Node* red_black_erase(Node* node, Node& header) {
  // Who has two children changes places with the one that follows it, which has no left one.
  Node* const mover = node->_M_left != nullptr && node->_M_right != nullptr
                          ? lowest(node->_M_right, Side::left)
                          : nullptr;
  Node* const leaver = mover != nullptr ? mover : node;
  Node* const orphan = leaver->_M_left != nullptr ? leaver->_M_left : leaver->_M_right;
  Node* parent = leaver->_M_parent;
  const bool was_root = leaver == header._M_parent;
  const Side side = was_root ? Side::left : side_of(leaver);
  const bool black_is_missing = !is_red(leaver);

  if (mover == nullptr) {
    // The first and the last have at most one child, and who follows is below it or above.
    if (node == header._M_left)
      set_child(&header, Side::left, orphan != nullptr ? lowest(orphan, Side::left) : parent);
    if (node == header._M_right)
      set_child(&header, Side::right, orphan != nullptr ? lowest(orphan, Side::right) : parent);
  }
  replace(leaver, orphan, header);
  if (mover != nullptr) {
    if (parent == node) parent = mover;
    replace(node, mover, header);
    set_child(mover, Side::left, node->_M_left);
    set_parent(node->_M_left, mover);
    set_child(mover, Side::right, node->_M_right);
    if (node->_M_right != nullptr) set_parent(node->_M_right, mover);
    set_color(mover, node->_M_color);
  }
  if (black_is_missing) balance_missing_black(orphan, parent, side, header);
  return node;
}

}  // namespace pawl
