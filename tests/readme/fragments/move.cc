// run: c++ -std=c++20 -Wall -Wextra -Werror move.cc -o move $(pkg-config --cflags --libs pawl) && ./move
#include <pawl/heap.hpp>

int main() {
  {
    pawl::heap old("shop.heap");
    old.root<pawl::map<pawl::string, long>>()["nails"] = 7;
    old.sync();
  }
  FRAGMENT
  return to.root<stock>()["nails"] == 7 ? 0 : 1;
}
