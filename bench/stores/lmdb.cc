#include <fmt/core.h>
#include <lmdb.h>

#include <stdexcept>
#include <utility>

#include "stores/kinds.h"
#include "stores/under_pawl.h"

namespace pawl::bench {
namespace {

// Address space, not disk: room for every value in pages of its own, several times over.
constexpr std::uint64_t kMapBytesMin = std::uint64_t{256} << 20;
constexpr std::uint64_t kMapBytesPerKey = std::uint64_t{32} << 10;

void expect(int outcome) {
  if (outcome != MDB_SUCCESS) throw std::runtime_error(::mdb_strerror(outcome));
}

MDB_val value_of(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};  // LMDB does not write through it
}

class LmdbStore final : public Store {
 public:
  // With `flags` that leave flushing to the program, each commit is followed by mdb_env_sync().
  LmdbStore(const std::string& path, unsigned flags, std::uint64_t map_bytes)
      : is_flushed_by_us_((flags & MDB_NOSYNC) != 0) {
    MDB_env* environment = nullptr;
    expect(::mdb_env_create(&environment));
    environment_.reset(environment);
    expect(::mdb_env_set_mapsize(environment, map_bytes));
    expect(::mdb_env_open(environment, path.c_str(), flags, 0600));
    begin_batch();
    expect(::mdb_dbi_open(batch_, nullptr, 0, &table_));
    commit_batch();
  }

  void put(std::string_view key, std::string_view value) override {
    update([&](MDB_txn* transaction) {
      MDB_val key_value = value_of(key);
      MDB_val data = value_of(value);
      return ::mdb_put(transaction, table_, &key_value, &data, 0);
    });
  }
  void erase(std::string_view key) override {
    update([&](MDB_txn* transaction) {
      MDB_val key_value = value_of(key);
      return ::mdb_del(transaction, table_, &key_value, nullptr);
    });
  }
  void begin_batch() override { expect(::mdb_txn_begin(environment_.get(), nullptr, 0, &batch_)); }
  void commit_batch() override {
    expect(::mdb_txn_commit(std::exchange(batch_, nullptr)));
    if (is_flushed_by_us_) expect(::mdb_env_sync(environment_.get(), 1));
  }
  bool get(std::string_view key, std::string& value) override {
    // A reader that is kept and renewed, as LMDB advises.
    MDB_txn* reader = reader_.get();
    if (reader == nullptr) {
      expect(::mdb_txn_begin(environment_.get(), nullptr, MDB_RDONLY, &reader));
      reader_.reset(reader);
    } else {
      expect(::mdb_txn_renew(reader));
    }
    MDB_val key_value = value_of(key);
    MDB_val data{};
    const int outcome = ::mdb_get(reader, table_, &key_value, &data);
    if (outcome == MDB_SUCCESS) value.assign(static_cast<const char*>(data.mv_data), data.mv_size);
    ::mdb_txn_reset(reader);
    if (outcome == MDB_NOTFOUND) return false;
    expect(outcome);
    return true;
  }

 private:
  struct Close {
    void operator()(MDB_env* environment) const { ::mdb_env_close(environment); }
    void operator()(MDB_txn* transaction) const { ::mdb_txn_abort(transaction); }
  };
  template <class Change>
  void update(const Change& change) {
    if (batch_ != nullptr) {
      expect(change(batch_));
      return;
    }
    begin_batch();
    expect(change(batch_));
    commit_batch();
  }

  const bool is_flushed_by_us_;
  std::unique_ptr<MDB_env, Close> environment_;
  std::unique_ptr<MDB_txn, Close> reader_;
  MDB_dbi table_ = 0;
  MDB_txn* batch_ = nullptr;
};

std::string lmdb_version_text() {
  return fmt::format("LMDB {}.{}.{}", MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH);
}

}  // namespace

StoreKind lmdb_kind() {
  return {"lmdb", lmdb_version_text(),
          "its default: each transaction is flushed; a batch is a transaction",
          [](const StoreSetup& setup) {
            return std::make_unique<LmdbStore>(setup.directory, 0,
                                               kMapBytesMin + setup.keys_max * kMapBytesPerKey);
          }};
}

StoreKind lmdb_synchronize_kind(Under under) {
  return under_or_not("lmdb", lmdb_version_text(),
                      "MDB_WRITEMAP, MDB_NOSYNC, mdb_env_sync() after each transaction", under,
                      [](const std::string& path) {
                        return std::make_unique<LmdbStore>(
                            path, MDB_WRITEMAP | MDB_NOSYNC | MDB_NOSUBDIR, kMapBytesMin);
                      });
}

}  // namespace pawl::bench
