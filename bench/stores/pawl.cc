// A std::map of std::strings in Pawl's heap, as any program would have it.
#include <fmt/core.h>
#include <pawl/heap.hpp>

#include "stores/kinds.h"

namespace pawl::bench {
namespace {

class PawlStore final : public Store {
 public:
  explicit PawlStore(const StoreSetup& setup)
      : heap_(setup.directory + "/store.heap"), values_(heap_.root<Values>()) {}

  void put(std::string_view key, std::string_view value) override {
    const auto at = values_.lower_bound(key);
    if (at != values_.end() && at->first == key)
      at->second = value;
    else
      values_.emplace_hint(at, key, value);
    if (!in_batch_) heap_.sync();
  }
  void erase(std::string_view key) override {
    values_.erase(values_.find(key));
    if (!in_batch_) heap_.sync();
  }
  void begin_batch() override { in_batch_ = true; }
  void commit_batch() override {
    in_batch_ = false;
    heap_.sync();
  }
  bool get(std::string_view key, std::string& value) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return false;
    value = found->second;
    return true;
  }
  JournalUse journal_use() override {
    const pawl_statistics statistics = heap_.statistics();
    return {statistics.bytes_logged, statistics.checkpoints};
  }

 private:
  using Values = pawl::map<pawl::string, pawl::string>;

  pawl::heap heap_;
  Values& values_;
  bool in_batch_ = false;
};

}  // namespace

StoreKind pawl_kind() {
  return {"pawl",
          fmt::format("Pawl {}.{}.{}", PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR, PAWL_VERSION_PATCH),
          "std::map in a heap, sync() after each operation or batch",
          [](const StoreSetup& setup) { return std::make_unique<PawlStore>(setup); }};
}

}  // namespace pawl::bench
