#include <fmt/core.h>
#include <gdbm.h>

#include <cstdlib>
#include <stdexcept>

#include "stores/kinds.h"
#include "stores/under_pawl.h"

namespace pawl::bench {
namespace {

datum datum_of(std::string_view text) {
  // gdbm does not write through it.
  return {const_cast<char*>(text.data()), static_cast<int>(text.size())};
}

class GdbmStore final : public Store {
 public:
  explicit GdbmStore(const std::string& path)
      : database_(::gdbm_open(path.c_str(), 0, GDBM_WRCREAT, 0600, nullptr)) {
    if (database_ == nullptr) throw std::runtime_error(::gdbm_strerror(gdbm_errno));
  }
  ~GdbmStore() override { ::gdbm_close(database_); }

  void put(std::string_view key, std::string_view value) override {
    expect(::gdbm_store(database_, datum_of(key), datum_of(value), GDBM_REPLACE));
    if (!in_batch_) expect(::gdbm_sync(database_));
  }
  void erase(std::string_view key) override {
    expect(::gdbm_delete(database_, datum_of(key)));
    if (!in_batch_) expect(::gdbm_sync(database_));
  }
  void begin_batch() override { in_batch_ = true; }
  void commit_batch() override {
    in_batch_ = false;
    expect(::gdbm_sync(database_));
  }
  bool get(std::string_view key, std::string& value) override {
    const datum found = ::gdbm_fetch(database_, datum_of(key));
    if (found.dptr == nullptr) {
      if (gdbm_errno != GDBM_ITEM_NOT_FOUND) expect(-1);
      return false;
    }
    value.assign(found.dptr, static_cast<std::size_t>(found.dsize));
    std::free(found.dptr);
    return true;
  }

 private:
  void expect(int outcome) const {
    if (outcome != 0) throw std::runtime_error(::gdbm_db_strerror(database_));
  }

  const GDBM_FILE database_;
  bool in_batch_ = false;
};

std::string gdbm_version_text() {
  return fmt::format("gdbm {}.{}.{}", GDBM_VERSION_MAJOR, GDBM_VERSION_MINOR, GDBM_VERSION_PATCH);
}

}  // namespace

// The flag GDBM_SYNC does not do: gdbm 1.23 then flushes only what changes the header, and a
// replaced value may wait for good.  Its crash tolerance needs a file system that clones files.
StoreKind gdbm_kind() {
  return {"gdbm", gdbm_version_text(),
          "gdbm_sync after each operation or batch; durable, NOT atomic",
          [](const StoreSetup& setup) {
            return std::make_unique<GdbmStore>(setup.directory + "/store");
          }};
}

StoreKind gdbm_synchronize_kind(Under under) {
  return under_or_not("gdbm", gdbm_version_text(), "gdbm_sync after each operation or batch", under,
                      [](const std::string& path) { return std::make_unique<GdbmStore>(path); });
}

}  // namespace pawl::bench
