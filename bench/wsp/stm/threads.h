// Which threads have transactions, and since when the one that each is in: memory that a
// transaction has given back, or made its thread's own, is nobody else's only when all that began
// before are over.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pawl::bench::stm {

// Of the calling thread, from 0 to kThreadsMax - 1, until it ends.  Ends the program with a text
// when there are too many.
std::size_t take_thread_index();
void give_back_thread_index(std::size_t index);

void begin_being_active(std::size_t index, std::uint64_t since);
void end_being_active(std::size_t index);
// Returns when no transaction is active that began before that time.
void wait_for_older(std::uint64_t time);

}  // namespace pawl::bench::stm
