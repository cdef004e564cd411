// run: ! pkg-config --exists tkrzw || { c++ -std=c++17 -Wall -Werror tkrzw_in_place.cc -o it $(pkg-config --cflags --libs tkrzw) && ./it; }
#include <tkrzw_dbm_hash.h>

#include <string>

struct Counted {
  int calls = 0;
  void Process(const std::string&) { calls++; }
};

int main() {
  const std::string path = "database.tkh";
  tkrzw::HashDBM database;
  if (database.Open(path, true) != tkrzw::Status::SUCCESS) return 1;
  Counted one_sync;
  FRAGMENT
  return one_sync.calls == 1 ? 0 : 1;
}
