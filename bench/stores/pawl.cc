// A std::map of std::strings in Pawl's heap, as any program would have it.
//
// Where pawl-clang is built it compiles this file, so that one of the kinds can have its stores
// tracked by marks.  The others pay for the marks, and take no notice of them.
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

pawl_options default_options() {
  pawl_options options;
  if (::pawl_options_init(&options) != 0) throw std::runtime_error(::pawl_last_error());
  return options;
}

using Adjust = void (*)(pawl_options& options);

StoreKind kind_of(const std::string& name, const std::string& setting, Adjust adjust) {
  return {.name = name,
          .product = fmt::format("Pawl {}.{}.{}", PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR,
                                 PAWL_VERSION_PATCH),
          .setting = setting,
          .open =
              [adjust](const StoreSetup& setup) {
                pawl_options options = default_options();
                adjust(options);
                return std::make_unique<PawlStore>(setup, options);
              },
          .role = Role::pawl};
}

}  // namespace

StoreKind pawl_kind() {
  return kind_of("pawl", "std::map in a heap, sync() after each operation or batch",
                 [](pawl_options&) {});
}

StoreKind pawl_store_kind() {
  return kind_of("pawl-store", "as pawl, its stores tracked by the marks of pawl-clang",
                 [](pawl_options& options) { options.tracker = PAWL_TRACKER_STORE; });
}

StoreKind pawl_sleeping_kind() {
  return kind_of("pawl-sleeping", "as pawl, but no processor is kept awake while it waits",
                 [](pawl_options& options) { options.idle_poll_us = 0; });
}

}  // namespace pawl::bench
