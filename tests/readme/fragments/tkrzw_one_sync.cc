// run: ! pkg-config --exists tkrzw || { c++ -std=c++17 -Wall -Werror tkrzw_one_sync.cc -o it $(pkg-config --cflags --libs tkrzw) && ./it; }
#include <fcntl.h>
#include <tkrzw_dbm_hash.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

int main() {
  tkrzw::HashDBM database;
  if (database.Open("database.tkh", true) != tkrzw::Status::SUCCESS) return 1;
  if (database.Set("key", "value") != tkrzw::Status::SUCCESS) return 1;
  FRAGMENT
  return one_sync.descriptor >= 0 ? 0 : 1;
}
