// A store that forgets everything when it is closed.  It is not compared: the benchmark's own test
// asks for it by name, to see that a store which loses data fails the run.
#include <map>

#include "stores/kinds.h"

namespace pawl::bench {
namespace {

class VolatileStore final : public Store {
 public:
  void put(std::string_view key, std::string_view value) override {
    values_.insert_or_assign(std::string(key), std::string(value));
  }
  void erase(std::string_view key) override { values_.erase(std::string(key)); }
  void begin_batch() override {}
  void commit_batch() override {}
  bool get(std::string_view key, std::string& value) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return false;
    value = found->second;
    return true;
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace

StoreKind volatile_kind() {
  return {"volatile", "std::map", "nothing is durable",
          [](const StoreSetup&) { return std::make_unique<VolatileStore>(); }};
}

}  // namespace pawl::bench
