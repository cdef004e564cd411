// A std::map of std::strings in Pawl's heap, as any program would have it.
#include <fmt/core.h>
#include <pawl/heap.hpp>

#include <stdexcept>

#include "stores/kinds.h"

namespace pawl::bench {
namespace {

class PawlStore final : public Store {
 public:
  PawlStore(const StoreSetup& setup, const pawl_options& options)
      : heap_(setup.directory + "/store.heap", {.mapping = &options}),
        values_(heap_.root<Values>()) {}

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

pawl_options options_of(bool sleeping) {
  pawl_options options;
  if (::pawl_options_init(&options) != 0) throw std::runtime_error(::pawl_last_error());
  if (sleeping) options.idle_poll_us = 0;
  return options;
}

StoreKind kind_of(const std::string& name, const std::string& setting, bool sleeping) {
  return {.name = name,
          .product = fmt::format("Pawl {}.{}.{}", PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR,
                                 PAWL_VERSION_PATCH),
          .setting = setting,
          .open =
              [sleeping](const StoreSetup& setup) {
                return std::make_unique<PawlStore>(setup, options_of(sleeping));
              },
          .role = Role::pawl};
}

}  // namespace

StoreKind pawl_kind() {
  return kind_of("pawl", "std::map in a heap, sync() after each operation or batch", false);
}

StoreKind pawl_sleeping_kind() {
  return kind_of("pawl-sleeping", "as pawl, but no processor is kept awake while it waits", true);
}

}  // namespace pawl::bench
