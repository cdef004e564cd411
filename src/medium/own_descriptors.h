// Which descriptors are Pawl's own.  The program does not know of them, and closes "all" when it
// becomes a daemon: closefrom() and close_range() go around them.
#pragma once

#include <vector>

namespace pawl::own_descriptors {

// Lock-free.  What no descriptor can be is ignored.
void add(int number);
void remove(int number);
bool contains(int number);
// In ascending order.
std::vector<int> between(unsigned first, unsigned last);

// close_range(2) of the program, which leaves these open.
template <class CloseRange>
int close_others(unsigned first, unsigned last, const std::vector<int>& own, CloseRange close) {
  unsigned at = first;
  for (const int kept : own) {
    const auto number = static_cast<unsigned>(kept);
    if (at < number && close(at, number - 1) != 0) return -1;
    at = number + 1;
    if (number == last) return 0;
  }
  return close(at, last);
}

// Has closefrom() and close_range() for the program linked in, from an archive too.
void link_wrappers();

}  // namespace pawl::own_descriptors
