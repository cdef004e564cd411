// What compiled programs call instead of functions of the C++ library: they do the same, and mark
// every byte that they change.
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <istream>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <vector>

#include "support/recorded_stores.h"
#include "track/red_black_tree.h"

#define STORED_AS(name) __asm__("pawl_stored_" name)
using ListNode = std::__detail::_List_node_base;
void stored_hook(ListNode*, ListNode*) STORED_AS("_ZNSt8__detail15_List_node_base7_M_hookEPS0_");
void stored_unhook(ListNode*) STORED_AS("_ZNSt8__detail15_List_node_base9_M_unhookEv");
void stored_transfer(ListNode*, ListNode*, ListNode*)
    STORED_AS("_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_");
void stored_swap(ListNode&, ListNode&) STORED_AS("_ZNSt8__detail15_List_node_base4swapERS0_S1_");
void stored_reverse(ListNode*) STORED_AS("_ZNSt8__detail15_List_node_base10_M_reverseEv");
using HashPolicy = std::__detail::_Prime_rehash_policy;
std::size_t stored_next_buckets(const HashPolicy*, std::size_t)
    STORED_AS("_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm");
std::pair<bool, std::size_t> stored_need_rehash(const HashPolicy*, std::size_t, std::size_t,
                                                std::size_t)
    STORED_AS("_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm");
std::from_chars_result stored_from_chars(const char*, const char*, double&, std::chars_format)
    STORED_AS("_ZSt10from_charsPKcS0_RdSt12chars_format");
std::to_chars_result stored_to_chars(char*, char*, double) STORED_AS("_ZSt8to_charsPcS_d");
std::istream& stored_extract_int(std::istream*, int&) STORED_AS("_ZNSirsERi");
std::istream& stored_extract_double(std::istream*, double&)
    STORED_AS("_ZNSi10_M_extractIdEERSiRT_");
std::istream& stored_getline(std::istream*, char*, std::streamsize, char)
    STORED_AS("_ZNSi7getlineEPclc");
std::istream& stored_read(std::istream*, char*, std::streamsize) STORED_AS("_ZNSi4readEPcl");
std::istream& stored_extract_word(std::istream&, char*, std::streamsize)
    STORED_AS("_ZSt17__istream_extractRSiPcl");
std::istream& stored_extract_pointer(std::istream*, void*&) STORED_AS("_ZNSirsERPv");
using Condition = std::condition_variable;
void stored_make_condition(Condition*) STORED_AS("_ZNSt18condition_variableC1Ev");
void stored_end_condition(Condition*) STORED_AS("_ZNSt18condition_variableD1Ev");
void stored_notify_all(Condition*) STORED_AS("_ZNSt18condition_variable10notify_allEv");
void stored_wait(Condition*, std::unique_lock<std::mutex>&)
    STORED_AS("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

namespace pawl {
namespace {

using TreeNode = std::_Rb_tree_node_base;

class StoredCplusplus : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 64 * 1024;

  // What act() changes is marked; returns how much.
  std::size_t check(const std::function<void()>& act) {
    const std::string before(memory_.start(), kBytes);
    test::recorded_stores.clear();
    act();
    const std::set<std::size_t> marked = test::recorded_in(memory_);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < kBytes; ++i) {
      if (memory_.start()[i] == before[i]) continue;
      ++changed;
      EXPECT_TRUE(marked.contains(i)) << "byte " << i << " is not marked";
    }
    return changed;
  }

  test::RegionMemory memory_{kBytes};
  char* const b_ = memory_.start();
};

// Checks the subtree, and returns how many black nodes lie on each way down.
int check_subtree(const TreeNode* node, const TreeNode* parent,
                  std::vector<const TreeNode*>& order) {
  if (node == nullptr) return 1;
  EXPECT_EQ(node->_M_parent, parent);
  if (node->_M_color == std::_S_red) {
    for (const TreeNode* const child : {node->_M_left, node->_M_right})
      EXPECT_TRUE(child == nullptr || child->_M_color == std::_S_black) << "two red ones in a row";
  }
  const int left = check_subtree(node->_M_left, node, order);
  order.push_back(node);
  const int right = check_subtree(node->_M_right, node, order);
  EXPECT_EQ(left, right) << "unequal numbers of black ones";
  return left + (node->_M_color == std::_S_black ? 1 : 0);
}

TEST_F(StoredCplusplus, TreesStayBalancedAndInOrder) {
  struct Node : TreeNode {
    int key;
  };
  constexpr int kNodes = 120;
  auto* const header = reinterpret_cast<TreeNode*>(b_);
  auto* const nodes = reinterpret_cast<Node*>(b_ + 1024);
  for (std::uint64_t seed = 1; seed <= 9; ++seed) {
    SCOPED_TRACE(seed);
    header->_M_color = std::_S_red;
    header->_M_parent = nullptr;
    header->_M_left = header->_M_right = header;
    std::mt19937_64 random(seed);
    std::set<int> model;
    std::vector<Node*> free;
    for (int i = 0; i < kNodes; ++i) free.push_back(&nodes[i]);
    std::size_t widest = 0;
    for (int step = 0; step < 700; ++step) {
      // With some seeds the library does every other step: the trees are the same.
      const bool ours = seed % 3 != 0 || random() % 2 == 0;
      const std::size_t inserts_of_100 = step / 150 % 2 == 0 ? 75 : 25;
      const int key = static_cast<int>(random() % (seed % 2 == 0 ? 100'000 : 250));
      TreeNode* parent = header;
      TreeNode* at = header->_M_parent;
      bool left = true;
      Node* equal = nullptr;
      while (at != nullptr) {
        const int here = static_cast<Node*>(at)->key;
        if (here == key) equal = static_cast<Node*>(at);
        parent = at;
        left = key < here;
        at = left ? at->_M_left : at->_M_right;
      }
      if (random() % 100 < inserts_of_100 && equal == nullptr && !free.empty()) {
        Node* const node = free.back();
        free.pop_back();
        node->key = key;
        const bool to_left = parent == header || left;
        if (ours)
          widest =
              std::max(widest, check([&] { red_black_insert(to_left, node, parent, *header); }));
        else
          std::_Rb_tree_insert_and_rebalance(to_left, node, parent, *header);
        model.insert(key);
      } else if (!model.empty()) {
        if (equal == nullptr) equal = static_cast<Node*>(header->_M_parent);
        model.erase(equal->key);
        TreeNode* removed = nullptr;
        if (ours)
          check([&] { removed = red_black_erase(equal, *header); });
        else
          removed = std::_Rb_tree_rebalance_for_erase(equal, *header);
        ASSERT_EQ(removed, equal);
        free.push_back(equal);
      }
      std::vector<const TreeNode*> order;
      check_subtree(header->_M_parent, header, order);
      ASSERT_EQ(order.size(), model.size());
      std::size_t index = 0;
      for (const int expected : model)
        ASSERT_EQ(static_cast<const Node*>(order[index++])->key, expected);
      ASSERT_EQ(header->_M_left, order.empty() ? header : order.front());
      ASSERT_EQ(header->_M_right, order.empty() ? header : order.back());
      ASSERT_EQ(header->_M_color, std::_S_red);
      if (header->_M_parent != nullptr) {
        ASSERT_EQ(header->_M_parent->_M_color, std::_S_black);
      }
      ASSERT_FALSE(HasFailure()) << step;
    }
    EXPECT_GT(widest, 8u);
  }
}

// Hardly any node is marked that is not changed: a commit compares each.
TEST_F(StoredCplusplus, TreesMarkWhatTheyChange) {
  auto* const header = reinterpret_cast<TreeNode*>(b_);
  header->_M_color = std::_S_red;
  header->_M_left = header->_M_right = header;
  std::size_t marked = 0;
  std::size_t changed_nodes = 0;
  for (int i = 0; i < 500; ++i) {
    auto* const node = reinterpret_cast<TreeNode*>(b_ + 64 + 64 * i);
    const std::string before(b_, kBytes);
    test::recorded_stores.clear();
    red_black_insert(i == 0, node, i == 0 ? header : header->_M_right, *header);
    std::set<const char*> nodes;
    for (const test::RecordedStore& store : test::recorded_stores) nodes.insert(store.at);
    marked += nodes.size();
    for (int k = 0; k <= 500; ++k)
      changed_nodes += std::memcmp(b_ + 64 * k, before.data() + 64 * k, 64) != 0 ? 1 : 0;
  }
  EXPECT_LE(marked, changed_nodes + 500);
}

TEST_F(StoredCplusplus, Lists) {
  auto* const nodes = reinterpret_cast<ListNode*>(b_);
  ListNode& head = nodes[0];
  head._M_next = head._M_prev = &head;
  for (int i = 1; i < 20; ++i)
    EXPECT_GT(check([&] { stored_hook(&nodes[10 * i], i % 2 == 0 ? &head : head._M_next); }), 0u);
  EXPECT_GT(check([&] { stored_unhook(&nodes[50]); }), 0u);
  EXPECT_GT(check([&] { stored_reverse(&head); }), 0u);
  ListNode& other = nodes[300];
  other._M_next = other._M_prev = &other;
  EXPECT_GT(check([&] { stored_transfer(&other, head._M_next->_M_next, head._M_prev->_M_prev); }),
            0u);
  EXPECT_GT(check([&] { stored_swap(head, other); }), 0u);
  ListNode& empty = nodes[310];
  empty._M_next = empty._M_prev = &empty;
  EXPECT_GT(check([&] { stored_swap(head, empty); }), 0u);
  EXPECT_EQ(head._M_next, &head);
  int count = 0;
  for (const ListNode* const list : {&empty, &other}) {
    for (const ListNode* node = list->_M_next; node != list; node = node->_M_next) {
      EXPECT_EQ(node->_M_next->_M_prev, node);
      ++count;
    }
  }
  EXPECT_EQ(count, 18);
}

TEST_F(StoredCplusplus, HashTables) {
  auto* const policy = new (b_) HashPolicy;
  EXPECT_GT(
      check([&] { EXPECT_EQ(stored_next_buckets(policy, 100), HashPolicy()._M_next_bkt(100)); }),
      0u);
  EXPECT_GT(check([&] {
              const auto needed = stored_need_rehash(policy, 13, 13, 100);
              EXPECT_TRUE(needed.first);
              EXPECT_GE(needed.second, 113u);
            }),
            0u);
}

TEST_F(StoredCplusplus, Numbers) {
  auto& number = *reinterpret_cast<double*>(b_);
  EXPECT_GT(check([&] {
              const char* const text = "2.5x";
              const auto result =
                  stored_from_chars(text, text + 4, number, std::chars_format::general);
              EXPECT_EQ(result.ptr, text + 3);
              EXPECT_EQ(number, 2.5);
            }),
            0u);
  EXPECT_EQ(check([&] {
              const auto result = stored_to_chars(b_ + 64, b_ + 128, 4711.5);
              EXPECT_EQ(result.ptr, b_ + 70);
            }),
            6u);
}

TEST_F(StoredCplusplus, Streams) {
  std::istringstream stream("12 2.5\na line\nbytes");
  EXPECT_GT(check([&] { stored_extract_int(&stream, *reinterpret_cast<int*>(b_)); }), 0u);
  EXPECT_EQ(*reinterpret_cast<int*>(b_), 12);
  EXPECT_GT(check([&] { stored_extract_double(&stream, *reinterpret_cast<double*>(b_ + 8)); }), 0u);
  EXPECT_EQ(*reinterpret_cast<double*>(b_ + 8), 2.5);
  stream.ignore();
  EXPECT_EQ(check([&] { stored_getline(&stream, b_ + 64, 100, '\n'); }), 6u);
  EXPECT_STREQ(b_ + 64, "a line");
  stream.exceptions(std::ios::failbit);
  EXPECT_EQ(check([&] { EXPECT_THROW(stored_read(&stream, b_ + 128, 100), std::ios::failure); }),
            5u);
  EXPECT_EQ(stream.gcount(), 5);
}

TEST_F(StoredCplusplus, WordsAndPointersAreReadFromStreams) {
  std::istringstream in("pawl 0x1234");
  EXPECT_EQ(check([&] { stored_extract_word(in, b_, 20); }), 4u);
  EXPECT_STREQ(b_, "pawl");
  EXPECT_GT(check([&] { stored_extract_pointer(&in, *reinterpret_cast<void**>(b_ + 64)); }), 0u);
  std::memset(b_, 1, 100);
  std::istringstream longer("longer than there is room for");
  EXPECT_EQ(check([&] { stored_extract_word(longer, b_, 4); }), 4u);
}

TEST_F(StoredCplusplus, ConditionVariablesAreMarked) {
  std::memset(b_, 1, sizeof(Condition));
  auto* const condition = reinterpret_cast<Condition*>(b_);
  EXPECT_GT(check([&] { stored_make_condition(condition); }), 0u);
  auto* const mutex = new (b_ + 128) std::mutex;
  EXPECT_GT(check([&] {
              std::unique_lock lock(*mutex);
              bool is_over = false;
              std::thread other([&] {
                const std::lock_guard guard(*mutex);
                is_over = true;
                condition->notify_all();
              });
              while (!is_over) stored_wait(condition, lock);
              lock.release();  // and so the mutex is changed
              other.join();
            }),
            0u);
  mutex->unlock();
  (void)check([&] { stored_notify_all(condition); });
  (void)check([&] { stored_end_condition(condition); });
}

}  // namespace
}  // namespace pawl
