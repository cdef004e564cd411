// LMDB with MDB_WRITEMAP and MDB_NOSYNC or MDB_MAPASYNC, of which its manual says that a crash may
// corrupt the database; mdb_env_sync(env, 1) is the commit.  An operation is one transaction.
#include <lmdb.h>

#include <set>

#include "torture/store.h"

namespace pawl::retrofit {
namespace {

// Address space, and the size of the file; not disk.
constexpr std::size_t kMapBytes = std::size_t{64} << 20;

void expect(int outcome, const char* call) {
  if (outcome != MDB_SUCCESS) die(std::string(call) + ": " + mdb_strerror(outcome));
}

MDB_val value_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};  // LMDB does not write through it
}

std::string text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

class LmdbStore final : public Store {
 public:
  LmdbStore(const std::string& path, unsigned flags) {
    expect(mdb_env_create(&environment_), "mdb_env_create");
    expect(mdb_env_set_mapsize(environment_, kMapBytes), "mdb_env_set_mapsize");
    expect(mdb_env_open(environment_, path.c_str(), MDB_NOSUBDIR | MDB_WRITEMAP | flags, 0600),
           "mdb_env_open");
    begin();
    expect(mdb_dbi_open(transaction_, nullptr, 0, &table_), "mdb_dbi_open");
    abort();
  }

  bool was_repaired() override { return false; }  // it knows no repair
  void set(const std::string& key, const std::string& value) override {
    begin();
    MDB_val key_value = value_of(key);
    MDB_val data = value_of(value);
    expect(mdb_put(transaction_, table_, &key_value, &data, 0), "mdb_put");
  }
  void append(const std::string& key, const std::string& value) override {
    begin();
    MDB_val key_value = value_of(key);
    MDB_val old{};
    const int outcome = mdb_get(transaction_, table_, &key_value, &old);
    if (outcome != MDB_NOTFOUND) expect(outcome, "mdb_get");
    set(key, (outcome == MDB_SUCCESS ? text_of(old) : std::string()) + value);
  }
  void remove(const std::string& key) override {
    begin();
    MDB_val key_value = value_of(key);
    const int outcome = mdb_del(transaction_, table_, &key_value, nullptr);
    if (outcome != MDB_NOTFOUND) expect(outcome, "mdb_del");
  }
  void synchronise() override {
    begin();
    expect(mdb_txn_commit(transaction_), "mdb_txn_commit");
    transaction_ = nullptr;
    expect(mdb_env_sync(environment_, 1), "mdb_env_sync");
  }
  // It has none of its own: every page must be in the tree or in the list of free pages, once.
  void check(const Model& found) override {
    // The list of free pages may be walked by a reader only.
    abort();
    expect(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &transaction_), "mdb_txn_begin");
    MDB_envinfo information{};
    expect(mdb_env_info(environment_, &information), "mdb_env_info");
    MDB_stat main{};
    expect(mdb_stat(transaction_, table_, &main), "mdb_stat");
    MDB_stat free_list{};
    expect(mdb_stat(transaction_, kFreeList, &free_list), "mdb_stat");
    const std::set<std::size_t> free_pages = pages_in_free_list();
    const std::size_t used = pages_of(main) + pages_of(free_list) + kMetaPages;
    if (used + free_pages.size() != information.me_last_pgno + 1)
      die("of " + std::to_string(information.me_last_pgno + 1) + " pages " + std::to_string(used) +
          " are used and " + std::to_string(free_pages.size()) + " free");
    if (found.size() != main.ms_entries) die("it counts other records than it has");
    abort();
  }
  Model records() override {
    begin();
    Model records;
    walk(table_, [&records](const MDB_val& key, const MDB_val& value) {
      if (!records.empty() && text_of(key) <= records.rbegin()->first) die("keys out of order");
      records.emplace_hint(records.end(), text_of(key), text_of(value));
    });
    return records;
  }
  void close() override {
    abort();
    mdb_env_close(environment_);
  }

 private:
  static constexpr MDB_dbi kFreeList = 0;
  static constexpr std::size_t kMetaPages = 2;

  static std::size_t pages_of(const MDB_stat& stat) {
    return stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
  }

  void begin() {
    if (transaction_ == nullptr)
      expect(mdb_txn_begin(environment_, nullptr, 0, &transaction_), "mdb_txn_begin");
  }

  void abort() {
    if (transaction_ != nullptr) mdb_txn_abort(transaction_);
    transaction_ = nullptr;
  }

  template <class Visit>
  void walk(MDB_dbi table, Visit visit) {
    MDB_cursor* cursor = nullptr;
    expect(mdb_cursor_open(transaction_, table, &cursor), "mdb_cursor_open");
    MDB_val key{};
    MDB_val value{};
    int outcome = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; outcome == MDB_SUCCESS; outcome = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
      visit(key, value);
    if (outcome != MDB_NOTFOUND) expect(outcome, "mdb_cursor_get");
    mdb_cursor_close(cursor);
  }

  // Each record of the list is a count and so many page numbers.
  std::set<std::size_t> pages_in_free_list() {
    std::set<std::size_t> pages;
    walk(kFreeList, [&pages](const MDB_val&, const MDB_val& value) {
      const auto* const numbers = static_cast<const std::size_t*>(value.mv_data);
      for (std::size_t i = 1; i <= numbers[0]; ++i) {
        if (!pages.insert(numbers[i]).second)
          die("page " + std::to_string(numbers[i]) + " is free twice");
      }
    });
    return pages;
  }

  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 1;
  MDB_txn* transaction_ = nullptr;
};

// The other file, torture.mdb-lock, is no one's data, and the glob leaves it out.
StoreKind lmdb_kind(const std::string& name, unsigned flags) {
  StoreKind kind{name, "torture.mdb", "*.mdb", [flags](const std::string& path, bool) {
                   return std::make_unique<LmdbStore>(path, flags);
                 }};
  kind.synchronises_at_once = flags == MDB_NOSYNC;
  return kind;
}

}  // namespace

std::vector<StoreKind> lmdb_kinds() {
  return {lmdb_kind("lmdb_nosync", MDB_NOSYNC), lmdb_kind("lmdb_mapasync", MDB_MAPASYNC)};
}

}  // namespace pawl::retrofit
