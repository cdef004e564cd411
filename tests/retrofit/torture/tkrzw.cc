// Tkrzw's databases in memory-mapped files, which are what it uses unless told otherwise.
//
// Its Synchronize(true) makes the whole file durable first, marked as not closed, and then the
// first page, marked as closed; a crash between the two leaves a file that holds everything and
// that Tkrzw copies anew when it is opened.  With a FileProcessor the mark is set when that is
// called: it can make all of it durable in one step, and after that nothing is ever restored.
//
// Records are appended, not updated in place, but for the kinds that say so.  In place,
// Tkrzw 1.0.25 reuses the free blocks that it listed in the file when it was last closed, as long
// as the file is marked as closed.  A file that was synchronised since has the mark and an old
// list.  So those kinds make the file durable when the mark is gone again; Tkrzw then looks for the
// end of its records and does without the list.
#include <fcntl.h>
#include <tkrzw_dbm_hash.h>
#include <tkrzw_dbm_skip.h>
#include <tkrzw_dbm_tree.h>
#include <tkrzw_lib_common.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "torture/store.h"

namespace pawl::retrofit {
namespace {

void expect(const tkrzw::Status& status, const char* call) {
  if (status != tkrzw::Status::SUCCESS) die(std::string(call) + ": " + tkrzw::ToString(status));
}

// One fdatasync() while the file is marked as closed.  The descriptor stays open: to close any one
// of a file's descriptors gives up the process's record locks on it, and Tkrzw holds one.
class OneSync final : public tkrzw::DBM::FileProcessor {
 public:
  OneSync() = default;
  OneSync(const OneSync&) = delete;
  OneSync& operator=(const OneSync&) = delete;
  ~OneSync() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  void Process(const std::string& path) override {
    if (descriptor_ < 0) descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor_ < 0 || fdatasync(descriptor_) != 0) die("cannot make " + path + " durable");
  }

 private:
  int descriptor_ = -1;
};

enum class Synchronised { hard, in_one_step, marked_as_open };

template <class Database>
class TkrzwStore : public Store {
 public:
  TkrzwStore(const std::string& path, const typename Database::TuningParameters& parameters,
             Synchronised how)
      : how_(how), path_(path) {
    expect(database_.OpenAdvanced(path, true, tkrzw::File::OPEN_DEFAULT, parameters), "Open");
  }

  bool was_repaired() override { return !database_.IsHealthy() || database_.IsAutoRestored(); }
  void set(const std::string& key, const std::string& value) override {
    expect(database_.Set(key, value), "Set");
  }
  void append(const std::string& key, const std::string& value) override {
    expect(database_.Append(key, value), "Append");
  }
  void remove(const std::string& key) override {
    const tkrzw::Status status = database_.Remove(key);
    if (status != tkrzw::Status::NOT_FOUND_ERROR) expect(status, "Remove");
  }
  void synchronise() override {
    switch (how_) {
      case Synchronised::hard:
        return expect(database_.Synchronize(true), "Synchronize");
      case Synchronised::in_one_step:
        return expect(database_.Synchronize(false, &one_sync_), "Synchronize");
      case Synchronised::marked_as_open:
        expect(database_.Synchronize(false), "Synchronize");
        return one_sync_.Process(path_);
    }
  }
  void check(const Model& found) override {
    if constexpr (std::is_same_v<Database, tkrzw::SkipDBM>) {
      expect(database_.ValidateRecords(), "ValidateRecords");
    } else {
      expect(database_.ValidateHashBuckets(), "ValidateHashBuckets");
      expect(database_.ValidateRecords(-1, -1), "ValidateRecords");
    }
    if (database_.CountSimple() != static_cast<std::int64_t>(found.size()))
      die("it counts other records than it has");
  }
  Model records() override {
    Model records;
    const auto iterator = database_.MakeIterator();
    expect(iterator->First(), "First");
    std::string key;
    std::string value;
    for (tkrzw::Status status = iterator->Get(&key, &value);
         status != tkrzw::Status::NOT_FOUND_ERROR; status = iterator->Get(&key, &value)) {
      expect(status, "Get");
      records[key] = value;
      expect(iterator->Next(), "Next");
    }
    return records;
  }
  void close() override { expect(database_.Close(), "Close"); }

 protected:
  Database& database() { return database_; }
  std::optional<std::string> get(const std::string& key) {
    std::string value;
    const tkrzw::Status status = database_.Get(key, &value);
    if (status == tkrzw::Status::NOT_FOUND_ERROR) return std::nullopt;
    expect(status, "Get");
    return value;
  }

 private:
  const Synchronised how_;
  const std::string path_;
  OneSync one_sync_;
  Database database_;
};

// The skip database shows changes only once it is synchronised, and keeps every value that a key
// got unless it is told to keep the last.  So each key is given to it once an operation.
class SkipStore final : public TkrzwStore<tkrzw::SkipDBM> {
 public:
  using TkrzwStore::TkrzwStore;

  void set(const std::string& key, const std::string& value) override { changed_[key] = value; }
  void append(const std::string& key, const std::string& value) override {
    const auto [entry, is_new] = changed_.try_emplace(key);
    if (is_new) entry->second = get(key);
    entry->second = entry->second.value_or("") + value;
  }
  void remove(const std::string& key) override { changed_[key] = std::nullopt; }
  void synchronise() override {
    for (const auto& [key, value] : changed_) {
      if (value) {
        TkrzwStore::set(key, *value);
      } else {
        TkrzwStore::remove(key);
      }
    }
    changed_.clear();
    expect(database().SynchronizeAdvanced(true, nullptr, tkrzw::SkipDBM::ReduceToLast),
           "SynchronizeAdvanced");
  }

 private:
  std::map<std::string, std::optional<std::string>> changed_;
};

tkrzw::HashDBM::TuningParameters hash_parameters(tkrzw::HashDBM::UpdateMode mode) {
  tkrzw::HashDBM::TuningParameters parameters;
  parameters.num_buckets = 100'000;
  parameters.update_mode = mode;
  return parameters;
}

tkrzw::TreeDBM::TuningParameters tree_parameters(tkrzw::HashDBM::UpdateMode mode) {
  tkrzw::TreeDBM::TuningParameters parameters;
  parameters.num_buckets = 5'000;
  parameters.update_mode = mode;
  return parameters;
}

template <class Adapter, class Parameters>
StoreKind tkrzw_kind(const std::string& name, const std::string& suffix,
                     const Parameters& parameters, Synchronised how) {
  StoreKind kind{"tkrzw_" + name, "torture." + suffix, "*." + suffix + "*",
                 [parameters, how](const std::string& path, bool) {
                   return std::make_unique<Adapter>(path, parameters, how);
                 }};
  return kind;
}

// See above why it may be copied anew, which Tkrzw calls restored.
template <class Adapter, class Parameters>
StoreKind restored_kind(const std::string& name, const std::string& suffix,
                        const Parameters& parameters, Synchronised how) {
  StoreKind kind = tkrzw_kind<Adapter>(name, suffix, parameters, how);
  kind.may_repair_itself = true;
  return kind;
}

}  // namespace

std::vector<StoreKind> tkrzw_kinds() {
  using Hash = TkrzwStore<tkrzw::HashDBM>;
  using Tree = TkrzwStore<tkrzw::TreeDBM>;
  const auto appending = tkrzw::HashDBM::UPDATE_APPENDING;
  const auto in_place = tkrzw::HashDBM::UPDATE_IN_PLACE;
  return {
      tkrzw_kind<Hash>("hash", "tkh", hash_parameters(appending), Synchronised::in_one_step),
      restored_kind<Hash>("hash_hard", "tkh", hash_parameters(appending), Synchronised::hard),
      restored_kind<Hash>("hash_in_place", "tkh", hash_parameters(in_place),
                          Synchronised::marked_as_open),
      tkrzw_kind<Tree>("tree", "tkt", tree_parameters(appending), Synchronised::in_one_step),
      restored_kind<Tree>("tree_hard", "tkt", tree_parameters(appending), Synchronised::hard),
      restored_kind<Tree>("tree_in_place", "tkt", tree_parameters(in_place),
                          Synchronised::marked_as_open),
      // It writes a new file, marked as closed, and renames it over the old one.
      tkrzw_kind<SkipStore>("skip", "tks", tkrzw::SkipDBM::TuningParameters(), Synchronised::hard)};
}

}  // namespace pawl::retrofit
