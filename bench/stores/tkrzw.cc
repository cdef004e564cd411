#include <fmt/core.h>
#include <tkrzw_dbm_tree.h>
#include <tkrzw_lib_common.h>

#include <stdexcept>

#include "stores/kinds.h"
#include "stores/under_pawl.h"

namespace pawl::bench {
namespace {

void expect(const tkrzw::Status& status) {
  if (status != tkrzw::Status::SUCCESS) throw std::runtime_error(tkrzw::ToString(status));
}

class TkrzwStore final : public Store {
 public:
  TkrzwStore(const std::string& path, const tkrzw::TreeDBM::TuningParameters& parameters) {
    expect(database_.OpenAdvanced(path, true, tkrzw::File::OPEN_DEFAULT, parameters));
  }
  ~TkrzwStore() override { database_.Close(); }

  void put(std::string_view key, std::string_view value) override {
    expect(database_.Set(key, value));
    if (!in_batch_) expect(database_.Synchronize(true));
  }
  void erase(std::string_view key) override {
    expect(database_.Remove(key));
    if (!in_batch_) expect(database_.Synchronize(true));
  }
  void begin_batch() override { in_batch_ = true; }
  void commit_batch() override {
    in_batch_ = false;
    expect(database_.Synchronize(true));
  }
  bool get(std::string_view key, std::string& value) override {
    const tkrzw::Status status = database_.Get(key, &value);
    if (status == tkrzw::Status::NOT_FOUND_ERROR) return false;
    expect(status);
    return true;
  }

 private:
  tkrzw::TreeDBM database_;
  bool in_batch_ = false;
};

}  // namespace

StoreKind tkrzw_kind() {
  return {"tkrzw", fmt::format("Tkrzw {}", tkrzw::PACKAGE_VERSION),
          "TreeDBM, appending, Synchronize(hard=true), restored to the last one of these",
          [](const StoreSetup& setup) {
            tkrzw::TreeDBM::TuningParameters parameters;
            parameters.update_mode = tkrzw::HashDBM::UPDATE_APPENDING;
            parameters.restore_mode = tkrzw::HashDBM::RESTORE_SYNC;
            return std::make_unique<TkrzwStore>(setup.directory + "/store.tkt", parameters);
          }};
}

StoreKind tkrzw_synchronize_kind(Under under) {
  return under_or_not("tkrzw", fmt::format("Tkrzw {}", tkrzw::PACKAGE_VERSION),
                      "TreeDBM, in place, Synchronize(hard=true) after each operation or batch",
                      under, [](const std::string& path) {
                        return std::make_unique<TkrzwStore>(path,
                                                            tkrzw::TreeDBM::TuningParameters());
                      });
}

}  // namespace pawl::bench
