#include "fase/stack.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fase/hand_made.h"

namespace pawl::test {
namespace {

extern const pawl_fase_function functions[];
enum : std::uint32_t { kPush, kPop, kPushInner, kPushTwice, kHoldAndWait, kKeepSpare, kFunctions };

// --- push: 0 links the node --------------------------------------------------------------------

void push_link(Stack* stack, StackNode* node, StackNode* top, std::uint64_t count) {
  store(node->next, top);
  store(stack->top, node);
  store(stack->count, count + 1);
  pawl_fase_mutex_unlock(&stack->mutex, nullptr, 0, nullptr);
}

void resume_push(std::uint32_t, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  push_link(words.get<Stack*>(0), words.get<StackNode*>(1), words.get<StackNode*>(2),
            words.get<std::uint64_t>(3));
}

// --- pop: 0 unlinks the node --------------------------------------------------------------------

std::uint64_t pop_unlink(pawl_fase* fase, Stack* stack, StackNode* node, std::uint64_t count) {
  const std::uint64_t value = node->value;
  store(stack->top, node->next);
  store(stack->count, count - 1);
  EXPECT_EQ(pawl_fase_free(fase, node), 0) << pawl_last_error();
  pawl_fase_mutex_unlock(&stack->mutex, nullptr, 0, nullptr);
  return value;
}

void resume_pop(std::uint32_t, const void* live_ins, const void*, void* result) {
  const Words words(live_ins);
  *static_cast<std::uint64_t*>(result) =
      pop_unlink(words.get<pawl_fase*>(0), words.get<Stack*>(1), words.get<StackNode*>(2),
                 words.get<std::uint64_t>(3));
}

// --- push_inner: as push, with the lock held; returns the new count ------------------------------

std::uint64_t push_inner_link(Stack* stack, StackNode* node, StackNode* top, std::uint64_t count) {
  store(node->next, top);
  store(stack->top, node);
  store(stack->count, count + 1);
  return count + 1;
}

std::uint64_t push_inner(pawl_fase* fase, Stack* stack, std::uint64_t value) {
  auto* const node = static_cast<StackNode*>(pawl_fase_malloc(fase, sizeof(StackNode)));
  const LiveIns first(fase, stack, value, node);
  pawl_fase_cut(&functions[kPushInner], 1, &first);
  store(node->value, value);
  StackNode* const top = stack->top;
  const std::uint64_t count = stack->count;
  const LiveIns second(stack, node, top, count);
  pawl_fase_cut(&functions[kPushInner], 0, &second);
  return push_inner_link(stack, node, top, count);
}

void resume_push_inner(std::uint32_t region, const void* live_ins, const void*, void* result) {
  const Words words(live_ins);
  std::uint64_t& count = *static_cast<std::uint64_t*>(result);
  if (region == 0) {
    count = push_inner_link(words.get<Stack*>(0), words.get<StackNode*>(1),
                            words.get<StackNode*>(2), words.get<std::uint64_t>(3));
    return;
  }
  auto* const stack = words.get<Stack*>(1);
  auto* const node = words.get<StackNode*>(3);
  store(node->value, words.get<std::uint64_t>(2));
  StackNode* const top = stack->top;
  const std::uint64_t now = stack->count;
  const LiveIns second(stack, node, top, now);
  pawl_fase_cut(&functions[kPushInner], 0, &second);
  count = push_inner_link(stack, node, top, now);
}

// --- push_twice: 0 after the first call, 1 after the second, 2 counts
// -----------------------------

void push_twice_end(Stack* stack, std::uint64_t count) {
  const LiveIns last(stack, count);
  pawl_fase_cut(&functions[kPushTwice], 2, &last);
  store(stack->count, count);
  pawl_fase_mutex_unlock(&stack->mutex, nullptr, 0, nullptr);
}

void push_twice_second(pawl_fase* fase, Stack* stack, std::uint64_t value) {
  const LiveIns after(stack);
  pawl_fase_call(&functions[kPushTwice], 1, &after);
  const std::uint64_t count = push_inner(fase, stack, value);
  pawl_fase_return();
  push_twice_end(stack, count);
}

void resume_push_twice(std::uint32_t region, const void* live_ins, const void* call_result, void*) {
  const Words words(live_ins);
  if (region == 0) {
    push_twice_second(words.get<pawl_fase*>(0), words.get<Stack*>(1), words.get<std::uint64_t>(2));
  } else if (region == 1) {
    push_twice_end(words.get<Stack*>(0), *static_cast<const std::uint64_t*>(call_result));
  } else {
    auto* const stack = words.get<Stack*>(0);
    store(stack->count, words.get<std::uint64_t>(1));
    pawl_fase_mutex_unlock(&stack->mutex, nullptr, 0, nullptr);
  }
}

// --- hold_and_wait: 0 waits, 1 stores, 2 behind the release -------------------------------------

void hold_and_store(Stack* first, Stack* second) {
  store(first->spare, static_cast<void*>(second));
  const LiveIns live_ins(first);
  pawl_fase_mutex_unlock(&second->mutex, &functions[kHoldAndWait], 2, &live_ins);
  pawl_fase_mutex_unlock(&first->mutex, nullptr, 0, nullptr);
}

void hold_and_wait_rest(Stack* first, Stack* second, void (*between)()) {
  if (between != nullptr) between();
  pawl_fase_mutex_lock(&second->mutex);
  const LiveIns live_ins(first, second);
  pawl_fase_cut(&functions[kHoldAndWait], 1, &live_ins);
  hold_and_store(first, second);
}

void resume_hold_and_wait(std::uint32_t region, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  auto* const first = words.get<Stack*>(0);
  if (region == 0) return hold_and_wait_rest(first, words.get<Stack*>(1), nullptr);
  if (region == 1) return hold_and_store(first, words.get<Stack*>(1));
  pawl_fase_mutex_unlock(&first->mutex, nullptr, 0, nullptr);
}

// --------------------------------------------------------------------------------------------------

// --- keep_spare: 0 allocates, behind the last frame ----------------------------------------------

void keep_spare_end(pawl_fase* fase, Stack* stack) {
  store(stack->spare, pawl_fase_malloc(fase, sizeof(StackNode)));
  pawl_fase_mutex_unlock(&stack->mutex, nullptr, 0, nullptr);
}

void resume_keep_spare(std::uint32_t, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  keep_spare_end(words.get<pawl_fase*>(0), words.get<Stack*>(1));
}

constexpr pawl_fase_region kPushRegions[] = {{1, 32, PAWL_FASE_AT_CUT}};
constexpr pawl_fase_region kPopRegions[] = {{2, 32, PAWL_FASE_AT_CUT}};
constexpr pawl_fase_region kPushInnerRegions[] = {{3, 32, PAWL_FASE_AT_CUT},
                                                  {4, 32, PAWL_FASE_AT_CUT}};
constexpr pawl_fase_region kPushTwiceRegions[] = {
    {5, 24, PAWL_FASE_AFTER_CALL}, {6, 8, PAWL_FASE_AFTER_CALL}, {7, 16, PAWL_FASE_AT_CUT}};
constexpr pawl_fase_region kHoldAndWaitRegions[] = {
    {8, 16, PAWL_FASE_AT_CUT}, {9, 16, PAWL_FASE_AT_CUT}, {10, 8, PAWL_FASE_AFTER_UNLOCK}};
constexpr pawl_fase_region kKeepSpareRegions[] = {{11, 16, PAWL_FASE_AT_CUT}};

const pawl_fase_function functions[] = {
    {address_of(&push), resume_push, "push", "stack.c", kPushRegions, 1, 0},
    {address_of(&pop), resume_pop, "pop", "stack.c", kPopRegions, 1, 8},
    {address_of(&push_inner), resume_push_inner, "push_inner", "stack.c", kPushInnerRegions, 2, 8},
    {address_of(&push_twice), resume_push_twice, "push_twice", "stack.c", kPushTwiceRegions, 3, 0},
    {address_of(&hold_and_wait), resume_hold_and_wait, "hold_and_wait", "stack.c",
     kHoldAndWaitRegions, 3, 0},
    {address_of(&keep_spare), resume_keep_spare, "keep_spare", "stack.c", kKeepSpareRegions, 1, 0},
};

[[maybe_unused]] const bool registered = [] {
  pawl_fase_register(functions, functions + kFunctions);
  return true;
}();

}  // namespace

Stack* make_stack(pawl_fase* fase) {
  auto* const stack = static_cast<Stack*>(pawl_fase_calloc(fase, 1, sizeof(Stack)));
  EXPECT_EQ(pawl_fase_set_root(fase, stack), 0) << pawl_last_error();
  return stack;
}

void push(pawl_fase* fase, Stack* stack, std::uint64_t value) {
  pawl_fase_mutex_lock(&stack->mutex);
  auto* const node = static_cast<StackNode*>(pawl_fase_malloc(fase, sizeof(StackNode)));
  // Nobody else knows it yet.
  store(node->value, value);
  StackNode* const top = stack->top;
  const std::uint64_t count = stack->count;
  const LiveIns live_ins(stack, node, top, count);
  pawl_fase_cut(&functions[kPush], 0, &live_ins);
  push_link(stack, node, top, count);
}

std::uint64_t pop(pawl_fase* fase, Stack* stack) {
  pawl_fase_mutex_lock(&stack->mutex);
  StackNode* const node = stack->top;
  if (node == nullptr) {
    pawl_fase_mutex_unlock(&stack->mutex, nullptr, 0, nullptr);
    return 0;
  }
  const std::uint64_t count = stack->count;
  const LiveIns live_ins(fase, stack, node, count);
  pawl_fase_cut(&functions[kPop], 0, &live_ins);
  return pop_unlink(fase, stack, node, count);
}

void push_twice(pawl_fase* fase, Stack* stack, std::uint64_t value) {
  pawl_fase_mutex_lock(&stack->mutex);
  const LiveIns after(fase, stack, value);
  pawl_fase_call(&functions[kPushTwice], 0, &after);
  push_inner(fase, stack, value);
  pawl_fase_return();
  push_twice_second(fase, stack, value);
}

void keep_spare(pawl_fase* fase, Stack* stack) {
  pawl_fase_mutex_lock(&stack->mutex);
  const LiveIns live_ins(fase, stack);
  pawl_fase_cut(&functions[kKeepSpare], 0, &live_ins);
  keep_spare_end(fase, stack);
}

void hold_and_wait(Stack* first, Stack* second, void (*between)()) {
  pawl_fase_mutex_lock(&first->mutex);
  const LiveIns live_ins(first, second);
  pawl_fase_cut(&functions[kHoldAndWait], 0, &live_ins);
  hold_and_wait_rest(first, second, between);
}

std::vector<std::uint64_t> values_of(const Stack* stack) {
  std::vector<std::uint64_t> values;
  for (const StackNode* node = stack->top; node != nullptr && values.size() <= stack->count;
       node = node->next)
    values.push_back(node->value);
  EXPECT_EQ(values.size(), stack->count);
  std::reverse(values.begin(), values.end());
  return values;
}

}  // namespace pawl::test
