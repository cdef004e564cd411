// run: c++ -std=c++17 -Wall -Wextra -Werror heap.cc -o heap $(pkg-config --cflags --libs pawl) && ./heap
#include <pawl/heap.hpp>

int main() {
  FRAGMENT
  return stock["nails"] == -100 && log.size() == 1 ? 0 : 1;
}
