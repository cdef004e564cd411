// A key-value store from Debian as the torture sees it: one adapter a store, one source file each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "torture/operations.h"

namespace pawl::retrofit {

// Says so on stderr and ends the process with 1: nothing that goes wrong here is to be mended.
[[noreturn]] void die(const std::string& what);

// An open store.  Each call dies when the store reports an error.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Whether it found itself in need of a repair, or made one, when it was opened.
  virtual bool was_repaired() = 0;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // A key that is not there gets the value.
  virtual void append(const std::string& key, const std::string& value) = 0;
  // A key that is not there is no error.
  virtual void remove(const std::string& key) = 0;
  // The store's own call by which what was changed becomes durable.
  virtual void synchronise() = 0;
  // All that it holds, in a full walk.
  virtual Model records() = 0;
  // The store's own check of itself, and that it agrees with what records() returned.
  virtual void check(const Model& found) = 0;
  virtual void close() = 0;
};

struct StoreKind {
  std::string name;  // STORE, or STORE_VARIANT
  std::string file;  // what it is called, in a directory of its own; empty for a server
  std::string glob;  // for `pawl run --atomic`
  std::function<std::unique_ptr<Store>(const std::string& path, bool create)> open;
  // A program of the store's, which ends with 0 when the store is sound; empty when there is none.
  std::function<std::vector<std::string>(const std::string& path)> check_command = nullptr;
  // The store may repair itself when it is opened, from a file that holds all that is promised.
  // Why is said where this is set.
  bool may_repair_itself = false;
  // synchronise() hands all changes over at once, so that the kernel may write them in any order.
  bool synchronises_at_once = false;
  // It has no call for several changes: an operation is one.
  bool commits_each_change = false;
};

// Of all the stores whose library was there when this was built.
std::vector<StoreKind> store_kinds();

// Each is defined by its adapter.
std::vector<StoreKind> kyoto_kinds();
std::vector<StoreKind> tkrzw_kinds();
std::vector<StoreKind> lmdb_kinds();
std::vector<StoreKind> gdbm_kinds();
std::vector<StoreKind> slapd_kinds();

}  // namespace pawl::retrofit
