// Inserting into and erasing from the red-black trees of the C++ library, with its nodes and its
// header: as its own functions do, but each node that is changed is marked for the store tracker.
#pragma once

#include <map>

namespace pawl {

// Makes `node` the left (or right) child of `parent`, where the tree's order has it, and balances
// the tree.  The header's parent is the root, its left and right are the first and the last node;
// in an empty tree it is its own left and right, and the `parent` of the first node.
void red_black_insert(bool left, std::_Rb_tree_node_base* node, std::_Rb_tree_node_base* parent,
                      std::_Rb_tree_node_base& header);

// Takes `node` out of the tree, and balances what is left.  Returns it.
std::_Rb_tree_node_base* red_black_erase(std::_Rb_tree_node_base* node,
                                         std::_Rb_tree_node_base& header);

}  // namespace pawl
