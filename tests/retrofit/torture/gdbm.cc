// gdbm, which maps its file; gdbm_sync() is the commit.
#include <gdbm.h>

#include <cstdlib>

#include "torture/store.h"

namespace pawl::retrofit {
namespace {

datum datum_of(const std::string& text) {
  return {const_cast<char*>(text.data()), static_cast<int>(text.size())};  // not written through
}

std::string take(const datum& found) {
  std::string text(found.dptr, static_cast<std::size_t>(found.dsize));
  std::free(found.dptr);
  return text;
}

class GdbmStore final : public Store {
 public:
  GdbmStore(const std::string& path, bool create)
      : database_(gdbm_open(path.c_str(), 0, create ? GDBM_WRCREAT : GDBM_WRITER, 0600, nullptr)) {
    if (database_ == nullptr) die("gdbm_open: " + std::string(gdbm_strerror(gdbm_errno)));
    int is_mapped = 0;
    expect(gdbm_setopt(database_, GDBM_GETMMAP, &is_mapped, sizeof(is_mapped)), "gdbm_setopt");
    if (is_mapped == 0) die("gdbm does not map its file");
  }

  bool was_repaired() override { return gdbm_needs_recovery(database_) != 0; }
  void set(const std::string& key, const std::string& value) override {
    expect(gdbm_store(database_, datum_of(key), datum_of(value), GDBM_REPLACE), "gdbm_store");
  }
  void append(const std::string& key, const std::string& value) override {
    set(key, fetch(key) + value);
  }
  void remove(const std::string& key) override {
    if (gdbm_delete(database_, datum_of(key)) != 0 && gdbm_errno != GDBM_ITEM_NOT_FOUND)
      expect(-1, "gdbm_delete");
  }
  void synchronise() override { expect(gdbm_sync(database_), "gdbm_sync"); }
  // Its list of free blocks, its count, and that it finds each record by its key.
  void check(const Model& found) override {
    expect(gdbm_avail_verify(database_), "gdbm_avail_verify");
    gdbm_count_t count = 0;
    expect(gdbm_count(database_, &count), "gdbm_count");
    if (count != found.size()) die("it counts other records than it has");
    for (const auto& [key, value] : found) {
      if (fetch(key) != value) die("it has " + key + " and does not find it");
    }
  }
  Model records() override {
    Model records;
    datum key = gdbm_firstkey(database_);
    while (key.dptr != nullptr) {
      const std::string name(key.dptr, static_cast<std::size_t>(key.dsize));
      records[name] = fetch(name);
      const datum next = gdbm_nextkey(database_, key);
      std::free(key.dptr);
      key = next;
    }
    if (gdbm_last_errno(database_) != GDBM_ITEM_NOT_FOUND) expect(-1, "gdbm_nextkey");
    return records;
  }
  void close() override { expect(gdbm_close(database_), "gdbm_close"); }

 private:
  static void expect(int outcome, const char* call) {
    if (outcome != 0) die(std::string(call) + ": " + gdbm_strerror(gdbm_errno));
  }

  // Empty when it is not there: no value in a trial is.
  std::string fetch(const std::string& key) {
    const datum found = gdbm_fetch(database_, datum_of(key));
    if (found.dptr != nullptr) return take(found);
    if (gdbm_errno != GDBM_ITEM_NOT_FOUND) expect(-1, "gdbm_fetch");
    return {};
  }

  const GDBM_FILE database_;
};

}  // namespace

std::vector<StoreKind> gdbm_kinds() {
  StoreKind kind{"gdbm", "torture.gdbm", "*.gdbm", [](const std::string& path, bool create) {
                   return std::make_unique<GdbmStore>(path, create);
                 }};
  kind.synchronises_at_once = true;
  return {kind};
}

}  // namespace pawl::retrofit
