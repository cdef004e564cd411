#include <fmt/core.h>
#include <sqlite3.h>

#include <stdexcept>

#include "stores/kinds.h"

namespace pawl::bench {
namespace {

class SqliteStore final : public Store {
 public:
  SqliteStore(const StoreSetup& setup, const char* pragmas) {
    sqlite3* database = nullptr;
    const int outcome = ::sqlite3_open((setup.directory + "/store.db").c_str(), &database);
    database_.reset(database);
    expect(outcome);
    execute(pragmas);
    // With the rows in the tree of the rows, not WITHOUT ROWID: in the tree of an index a row of
    // more than a quarter of a page spills into a page of its own, and each change writes twice as
    // much.
    execute("CREATE TABLE IF NOT EXISTS store (key TEXT PRIMARY KEY, value BLOB NOT NULL)");
    put_ = prepare(
        "INSERT INTO store VALUES (?1, ?2)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value");
    erase_ = prepare("DELETE FROM store WHERE key = ?1");
    get_ = prepare("SELECT value FROM store WHERE key = ?1");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
  }

  void put(std::string_view key, std::string_view value) override {
    bind_key(put_, key);
    expect(::sqlite3_bind_blob(put_.get(), 2, value.data(), static_cast<int>(value.size()),
                               SQLITE_STATIC));
    step(put_);
  }
  void erase(std::string_view key) override {
    bind_key(erase_, key);
    step(erase_);
  }
  void begin_batch() override { step(begin_); }
  void commit_batch() override { step(commit_); }
  bool get(std::string_view key, std::string& value) override {
    bind_key(get_, key);
    const int outcome = ::sqlite3_step(get_.get());
    if (outcome == SQLITE_ROW) {
      const auto* const bytes = static_cast<const char*>(::sqlite3_column_blob(get_.get(), 0));
      value.assign(bytes, static_cast<std::size_t>(::sqlite3_column_bytes(get_.get(), 0)));
    }
    expect(::sqlite3_reset(get_.get()));
    return outcome == SQLITE_ROW;
  }

 private:
  struct Close {
    void operator()(sqlite3* database) const { ::sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void expect(int outcome) const {
    if (outcome != SQLITE_OK) throw std::runtime_error(::sqlite3_errmsg(database_.get()));
  }
  void execute(const char* text) {
    expect(::sqlite3_exec(database_.get(), text, nullptr, nullptr, nullptr));
  }
  Statement prepare(const char* text) {
    sqlite3_stmt* statement = nullptr;
    expect(::sqlite3_prepare_v3(database_.get(), text, -1, SQLITE_PREPARE_PERSISTENT, &statement,
                                nullptr));
    return Statement(statement);
  }
  void bind_key(const Statement& statement, std::string_view key) {
    expect(::sqlite3_bind_text(statement.get(), 1, key.data(), static_cast<int>(key.size()),
                               SQLITE_STATIC));
  }
  // sqlite3_reset repeats the failure of the step.
  void step(const Statement& statement) {
    ::sqlite3_step(statement.get());
    expect(::sqlite3_reset(statement.get()));
  }

  std::unique_ptr<sqlite3, Close> database_;
  Statement put_;
  Statement erase_;
  Statement get_;
  Statement begin_;
  Statement commit_;
};

std::string library() { return fmt::format("SQLite {}", ::sqlite3_libversion()); }

}  // namespace

// With either journal the connection keeps its lock, as other systems keep theirs; a journal of the
// mode WAL then does without shared memory, if the lock's mode is set first.

// SQLite's default mode, DELETE, is durable only with synchronous=EXTRA: with FULL, a power cut
// soon after a commit may bring back the journal that the commit removed, and so undo it.  TRUNCATE
// keeps the journal's name, needs no more than FULL, and is faster than DELETE with EXTRA.
StoreKind sqlite_rollback_kind() {
  return {"sqlite-rollback", library(),
          "locking_mode=EXCLUSIVE, journal_mode=TRUNCATE, synchronous=FULL; a batch is a "
          "transaction",
          [](const StoreSetup& setup) {
            return std::make_unique<SqliteStore>(
                setup,
                "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=TRUNCATE;"
                " PRAGMA synchronous=FULL");
          }};
}

StoreKind sqlite_wal_kind() {
  return {"sqlite-wal", library(),
          "locking_mode=EXCLUSIVE, journal_mode=WAL, synchronous=FULL; a batch is a transaction",
          [](const StoreSetup& setup) {
            return std::make_unique<SqliteStore>(
                setup,
                "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;"
                " PRAGMA synchronous=FULL");
          }};
}

}  // namespace pawl::bench
