#include <fmt/core.h>
#include <kcdb.h>
#include <kchashdb.h>

#include <stdexcept>

#include "stores/kinds.h"
#include "stores/under_pawl.h"

namespace pawl::bench {
namespace {

enum class Durable { by_hard_transactions, by_synchronize };

class KyotoStore final : public Store {
 public:
  KyotoStore(const std::string& path, Durable durable) : durable_(durable) {
    expect(database_.open(path, kyotocabinet::TreeDB::OWRITER | kyotocabinet::TreeDB::OCREATE));
  }
  ~KyotoStore() override { database_.close(); }

  void put(std::string_view key, std::string_view value) override {
    update([&] { return database_.set(key.data(), key.size(), value.data(), value.size()); });
  }
  void erase(std::string_view key) override {
    update([&] { return database_.remove(key.data(), key.size()); });
  }
  void begin_batch() override {
    if (durable_ == Durable::by_hard_transactions) expect(database_.begin_transaction(true));
    in_batch_ = true;
  }
  void commit_batch() override {
    in_batch_ = false;
    expect(durable_ == Durable::by_hard_transactions ? database_.end_transaction(true)
                                                     : database_.synchronize(true));
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
  const Durable durable_;
  bool in_batch_ = false;
};

}  // namespace

StoreKind kyoto_kind() {
  return {"kyoto", fmt::format("Kyoto Cabinet {}", kyotocabinet::VERSION),
          "TreeDB, begin_transaction(hard=true); a batch is a transaction",
          [](const StoreSetup& setup) {
            return std::make_unique<KyotoStore>(setup.directory + "/store.kct",
                                                Durable::by_hard_transactions);
          }};
}

StoreKind kyoto_synchronize_kind(Under under) {
  return under_or_not("kyoto", fmt::format("Kyoto Cabinet {}", kyotocabinet::VERSION),
                      "TreeDB, synchronize(hard=true) after each operation or batch", under,
                      [](const std::string& path) {
                        return std::make_unique<KyotoStore>(path, Durable::by_synchronize);
                      });
}

}  // namespace pawl::bench
