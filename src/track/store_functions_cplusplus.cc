// pawl_stored_*: functions of the C++ library that are not inline, and write into a program's
// objects.  The trees' rebalancing is written anew, so that it marks the nodes that it changes and
// no others; the rest calls the library's.
#include "track/store_functions.h"

#include <charconv>
#include <condition_variable>
#include <istream>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

#include "track/red_black_tree.h"

using pawl::stored::mark;
using pawl::stored::mark_bytes;
using pawl::stored::mark_count;
using pawl::stored::mark_string;

// Gives a function the name under which compiled programs call it.
#define PAWL_STORED_AS(name) __asm__("pawl_stored_" name) __attribute__((visibility("default")))

// Trees: std::map, std::set and their kin.

using TreeNode = std::_Rb_tree_node_base;

void stored_insert_and_rebalance(bool left, TreeNode* node, TreeNode* parent, TreeNode& header)
    PAWL_STORED_AS("_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_");
void stored_insert_and_rebalance(bool left, TreeNode* node, TreeNode* parent, TreeNode& header) {
  pawl::red_black_insert(left, node, parent, header);
}

TreeNode* stored_rebalance_for_erase(TreeNode* node, TreeNode& header)
    PAWL_STORED_AS("_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_");
TreeNode* stored_rebalance_for_erase(TreeNode* node, TreeNode& header) {
  return pawl::red_black_erase(node, header);
}

// Lists.

using ListNode = std::__detail::_List_node_base;

void stored_hook(ListNode* self, ListNode* position)
    PAWL_STORED_AS("_ZNSt8__detail15_List_node_base7_M_hookEPS0_");
void stored_hook(ListNode* self, ListNode* position) {
  self->_M_hook(position);
  mark(self);
  mark(self->_M_prev);
  mark(self->_M_next);
}

void stored_unhook(ListNode* self) PAWL_STORED_AS("_ZNSt8__detail15_List_node_base9_M_unhookEv");
void stored_unhook(ListNode* self) {
  self->_M_unhook();
  mark(self->_M_prev);
  mark(self->_M_next);
}

void stored_transfer(ListNode* self, ListNode* first, ListNode* last)
    PAWL_STORED_AS("_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_");
void stored_transfer(ListNode* self, ListNode* first, ListNode* last) {
  const ListNode* const before = self->_M_prev;
  const ListNode* const before_first = first->_M_prev;
  const ListNode* const before_last = last->_M_prev;
  self->_M_transfer(first, last);
  for (const ListNode* const node :
       {static_cast<const ListNode*>(self), static_cast<const ListNode*>(first),
        static_cast<const ListNode*>(last), before, before_first, before_last})
    mark(node);
}

void stored_swap(ListNode& one, ListNode& other)
    PAWL_STORED_AS("_ZNSt8__detail15_List_node_base4swapERS0_S1_");
void stored_swap(ListNode& one, ListNode& other) {
  ListNode::swap(one, other);
  for (const ListNode* const node : {&one, &other}) {
    mark(node);
    mark(node->_M_next);
    mark(node->_M_prev);
  }
}

void stored_reverse(ListNode* self) PAWL_STORED_AS("_ZNSt8__detail15_List_node_base10_M_reverseEv");
void stored_reverse(ListNode* self) {
  self->_M_reverse();
  const ListNode* node = self;
  do {
    mark(node);
    node = node->_M_next;
  } while (node != self);
}

// Hash tables: when they grow next.

using HashPolicy = std::__detail::_Prime_rehash_policy;

std::size_t stored_next_buckets(const HashPolicy* self, std::size_t count)
    PAWL_STORED_AS("_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm");
std::size_t stored_next_buckets(const HashPolicy* self, std::size_t count) {
  const std::size_t result = self->_M_next_bkt(count);
  mark(self);
  return result;
}

std::pair<bool, std::size_t> stored_need_rehash(const HashPolicy* self, std::size_t buckets,
                                                std::size_t elements, std::size_t more)
    PAWL_STORED_AS("_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm");
std::pair<bool, std::size_t> stored_need_rehash(const HashPolicy* self, std::size_t buckets,
                                                std::size_t elements, std::size_t more) {
  const auto result = self->_M_need_rehash(buckets, elements, more);
  mark(self);
  return result;
}

// Condition variables, as those of the C library: marked before and behind.

using Condition = std::condition_variable;

#define PAWL_STORED_CONDITION(function, name, act) \
  void function(Condition*) PAWL_STORED_AS(name); \
  void function(Condition* self) { \
    mark(self); \
    act; \
    mark(self); \
  } \
  static_assert(true)
PAWL_STORED_CONDITION(stored_make_condition, "_ZNSt18condition_variableC1Ev", new(self) Condition);
PAWL_STORED_CONDITION(stored_make_base_condition, "_ZNSt18condition_variableC2Ev",
                      new(self) Condition);
PAWL_STORED_CONDITION(stored_end_condition, "_ZNSt18condition_variableD1Ev", self->~Condition());
PAWL_STORED_CONDITION(stored_end_base_condition, "_ZNSt18condition_variableD2Ev",
                      self->~Condition());
PAWL_STORED_CONDITION(stored_notify_one, "_ZNSt18condition_variable10notify_oneEv",
                      self->notify_one());
PAWL_STORED_CONDITION(stored_notify_all, "_ZNSt18condition_variable10notify_allEv",
                      self->notify_all());

void stored_wait(Condition* self, std::unique_lock<std::mutex>& lock)
    PAWL_STORED_AS("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void stored_wait(Condition* self, std::unique_lock<std::mutex>& lock) {
  mark(self);
  mark(lock.mutex());
  self->wait(lock);
  mark(self);
  mark(lock.mutex());
}

// Numbers and their texts.

#define PAWL_STORED_FROM_CHARS(type, code) \
  std::from_chars_result stored_from_chars(const char*, const char*, type&, std::chars_format) \
      PAWL_STORED_AS("_ZSt10from_charsPKcS0_R" code "St12chars_format"); \
  std::from_chars_result stored_from_chars(const char* first, const char* last, type& to, \
                                           std::chars_format format) { \
    const auto result = std::from_chars(first, last, to, format); \
    mark(&to); \
    return result; \
  } \
  static_assert(true)
PAWL_STORED_FROM_CHARS(float, "f");
PAWL_STORED_FROM_CHARS(double, "d");
PAWL_STORED_FROM_CHARS(long double, "e");

namespace {

// What a call with too little room has written is not told.
std::to_chars_result mark_text(const char* first, const char* last, std::to_chars_result result) {
  mark_count(first, (result.ec == std::errc{} ? result.ptr : last) - first);
  return result;
}

}  // namespace

#define PAWL_STORED_TO_CHARS(type, code) \
  std::to_chars_result stored_to_chars(char*, char*, type) \
      PAWL_STORED_AS("_ZSt8to_charsPcS_" code); \
  std::to_chars_result stored_to_chars(char* first, char* last, type value) { \
    return mark_text(first, last, std::to_chars(first, last, value)); \
  } \
  std::to_chars_result stored_to_chars(char*, char*, type, std::chars_format) \
      PAWL_STORED_AS("_ZSt8to_charsPcS_" code "St12chars_format"); \
  std::to_chars_result stored_to_chars(char* first, char* last, type value, \
                                       std::chars_format format) { \
    return mark_text(first, last, std::to_chars(first, last, value, format)); \
  } \
  std::to_chars_result stored_to_chars(char*, char*, type, std::chars_format, int) \
      PAWL_STORED_AS("_ZSt8to_charsPcS_" code "St12chars_formati"); \
  std::to_chars_result stored_to_chars(char* first, char* last, type value, \
                                       std::chars_format format, int precision) { \
    return mark_text(first, last, std::to_chars(first, last, value, format, precision)); \
  } \
  static_assert(true)
PAWL_STORED_TO_CHARS(float, "f");
PAWL_STORED_TO_CHARS(double, "d");
PAWL_STORED_TO_CHARS(long double, "e");

// Streams: what is read, also when the stream throws.

namespace {

template <class Mark>
class Behind {
 public:
  explicit Behind(const Mark& mark_all) : mark_all_(mark_all) {}
  ~Behind() { mark_all_(); }
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;

 private:
  const Mark& mark_all_;
};

}  // namespace

#define PAWL_STORED_EXTRACT(type, name) \
  std::istream& stored_extract(std::istream*, type&) PAWL_STORED_AS(name); \
  std::istream& stored_extract(std::istream* self, type& to) { \
    const auto mark_all = [&] { mark(&to); }; \
    const Behind behind(mark_all); \
    return *self >> to; \
  } \
  static_assert(true)
PAWL_STORED_EXTRACT(short, "_ZNSirsERs");
PAWL_STORED_EXTRACT(int, "_ZNSirsERi");
#define PAWL_STORED_EXTRACT_BOTH(type, code) \
  std::istream& stored_operator(std::istream*, type&) PAWL_STORED_AS("_ZNSirsER" code); \
  std::istream& stored_operator(std::istream* self, type& to) { \
    const auto mark_all = [&] { mark(&to); }; \
    const Behind behind(mark_all); \
    return *self >> to; \
  } \
  PAWL_STORED_EXTRACT(type, "_ZNSi10_M_extractI" code "EERSiRT_")
PAWL_STORED_EXTRACT_BOTH(bool, "b");
PAWL_STORED_EXTRACT_BOTH(unsigned short, "t");
PAWL_STORED_EXTRACT_BOTH(unsigned, "j");
PAWL_STORED_EXTRACT_BOTH(long, "l");
PAWL_STORED_EXTRACT_BOTH(unsigned long, "m");
PAWL_STORED_EXTRACT_BOTH(long long, "x");
PAWL_STORED_EXTRACT_BOTH(unsigned long long, "y");
PAWL_STORED_EXTRACT_BOTH(float, "f");
PAWL_STORED_EXTRACT_BOTH(double, "d");
PAWL_STORED_EXTRACT_BOTH(long double, "e");
PAWL_STORED_EXTRACT_BOTH(void*, "Pv");

std::istream& stored_extract_character(std::istream& self, char& to)
    PAWL_STORED_AS("_ZStrsIcSt11char_traitsIcEERSt13basic_istreamIT_T0_ES6_RS3_");
std::istream& stored_extract_character(std::istream& self, char& to) {
  const auto mark_all = [&] { mark(&to); };
  const Behind behind(mark_all);
  return self >> to;
}

// A word into an array.  Whoever throws has not set the zero behind it.
std::istream& stored_extract_word(std::istream& self, char* to, std::streamsize size)
    PAWL_STORED_AS("_ZSt17__istream_extractRSiPcl");
std::istream& stored_extract_word(std::istream& self, char* to, std::streamsize size) {
  const auto room = static_cast<std::size_t>(std::max<std::streamsize>(size, 0));
  bool is_over = false;
  const auto mark_all = [&] {
    if (is_over)
      mark_string(to, room);
    else
      mark_bytes(to, std::min(room, pawl::stored::kUnknownBytes));
  };
  const Behind behind(mark_all);
  std::__istream_extract(self, to, size);
  is_over = true;
  return self;
}

// With the zero that is set behind the text.
#define PAWL_STORED_TEXT(name, function, parameters, arguments) \
  std::istream& function parameters PAWL_STORED_AS(name); \
  std::istream& function parameters { \
    const auto mark_all = [&] { mark_count(to, std::min(self->gcount() + 1, size)); }; \
    const Behind behind(mark_all); \
    return self->arguments; \
  } \
  static_assert(true)
PAWL_STORED_TEXT("_ZNSi7getlineEPclc", stored_getline,
                 (std::istream * self, char* to, std::streamsize size, char end),
                 getline(to, size, end));
PAWL_STORED_TEXT("_ZNSi7getlineEPcl", stored_getline_newline,
                 (std::istream * self, char* to, std::streamsize size), getline(to, size));
PAWL_STORED_TEXT("_ZNSi3getEPclc", stored_get,
                 (std::istream * self, char* to, std::streamsize size, char end),
                 get(to, size, end));
PAWL_STORED_TEXT("_ZNSi3getEPcl", stored_get_newline,
                 (std::istream * self, char* to, std::streamsize size), get(to, size));
PAWL_STORED_TEXT("_ZNSi4readEPcl", stored_read,
                 (std::istream * self, char* to, std::streamsize size), read(to, size));

std::istream& stored_get_character(std::istream* self, char& to) PAWL_STORED_AS("_ZNSi3getERc");
std::istream& stored_get_character(std::istream* self, char& to) {
  const auto mark_all = [&] { mark(&to); };
  const Behind behind(mark_all);
  return self->get(to);
}

std::streamsize stored_readsome(std::istream* self, char* to, std::streamsize size)
    PAWL_STORED_AS("_ZNSi8readsomeEPcl");
std::streamsize stored_readsome(std::istream* self, char* to, std::streamsize size) {
  const auto mark_all = [&] { mark_count(to, self->gcount()); };
  const Behind behind(mark_all);
  return self->readsome(to, size);
}
