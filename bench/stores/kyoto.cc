#include <fmt/core.h>
#include <kcdb.h>
#include <kchashdb.h>

#include <stdexcept>

#include "stores/kinds.h"

namespace pawl::bench {
namespace {

class KyotoStore final : public Store {
 public:
  explicit KyotoStore(const StoreSetup& setup) {
    expect(database_.open(setup.directory + "/store.kct",
                          kyotocabinet::TreeDB::OWRITER | kyotocabinet::TreeDB::OCREATE));
  }
  ~KyotoStore() override { database_.close(); }

  void put(std::string_view key, std::string_view value) override {
    update([&] { return database_.set(key.data(), key.size(), value.data(), value.size()); });
  }
  void erase(std::string_view key) override {
    update([&] { return database_.remove(key.data(), key.size()); });
  }
  void begin_batch() override {
    expect(database_.begin_transaction(true));
    in_batch_ = true;
  }
  void commit_batch() override {
    in_batch_ = false;
    expect(database_.end_transaction(true));
  }
  bool get(std::string_view key, std::string& value) override {
    std::size_t size = 0;
    const std::unique_ptr<char[]> found(database_.get(key.data(), key.size(), &size));
    if (found == nullptr) {
      if (database_.error() != kyotocabinet::BasicDB::Error::NOREC) expect(false);
      return false;
    }
    value.assign(found.get(), size);
    return true;
  }

 private:
  void expect(bool done) const {
    if (!done) throw std::runtime_error(database_.error().message());
  }
  template <class Change>
  void update(const Change& change) {
    if (in_batch_) {
      expect(change());
      return;
    }
    begin_batch();
    expect(change());
    commit_batch();
  }

  kyotocabinet::TreeDB database_;
  bool in_batch_ = false;
};

}  // namespace

StoreKind kyoto_kind() {
  return {"kyoto", fmt::format("Kyoto Cabinet {}", kyotocabinet::VERSION),
          "TreeDB, begin_transaction(hard=true); a batch is a transaction",
          [](const StoreSetup& setup) { return std::make_unique<KyotoStore>(setup); }};
}

}  // namespace pawl::bench
