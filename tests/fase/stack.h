// A stack in a file of failure-atomic sections, with its functions as the compiler would make them.
#pragma once

#include <pthread.h>
#include <cstdint>
#include <vector>

#include "pawl/fase.h"

namespace pawl::test {

struct StackNode {
  std::uint64_t value;
  StackNode* next;
};

struct Stack {
  pthread_mutex_t mutex;
  StackNode* top;
  std::uint64_t count;
  void* spare;  // a block that is none of its nodes
};

// Makes an empty one, and sets the root.
Stack* make_stack(pawl_fase* fase);
// Each is one FASE.
void push(pawl_fase* fase, Stack* stack, std::uint64_t value);
std::uint64_t pop(pawl_fase* fase, Stack* stack);  // 0: it is empty
// Pushes twice, by a function that it calls.
void push_twice(pawl_fase* fase, Stack* stack, std::uint64_t value);
// Takes the lock of `first`, logs a frame, calls between(), if there is one, and takes that of
// `second`, too: only then it stores, that second is the spare of first.
void hold_and_wait(Stack* first, Stack* second, void (*between)());

// Allocates the spare block, and stores it, behind its last frame.
void keep_spare(pawl_fase* fase, Stack* stack);

// From the bottom on.  Fails the test when the stack is not sound.
std::vector<std::uint64_t> values_of(const Stack* stack);

}  // namespace pawl::test
