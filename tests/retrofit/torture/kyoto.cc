// Kyoto Cabinet's hash database and its tree; synchronize(true) is the commit.
#include <kchashdb.h>

#include "torture/store.h"

namespace pawl::retrofit {
namespace {

constexpr int kMapBytes = 64 << 20;

// Kyoto Cabinet's tree keeps to itself whether its file was repaired; its log does not.  "Trimming"
// is no repair: synchronize() is an msync() of the file with its slack, then an ftruncate() and an
// fsync(), and a crash between the two commits leaves the slack, whole records before it.
class RepairLog : public kyotocabinet::BasicDB::Logger {
 public:
  void log(const char*, int32_t, const char*, Kind, const char* message) override {
    const std::string text = message;
    for (const char* const sign : {"recovered", "reorganiz", "broken"}) {
      if (text.find(sign) != std::string::npos) repaired_ = true;
    }
  }
  bool repaired() const { return repaired_; }

 private:
  bool repaired_ = false;
};

template <class Database>
class KyotoStore final : public Store {
 public:
  KyotoStore(const std::string& path, bool create) {
    database_.tune_logger(&log_);
    database_.tune_map(kMapBytes);
    const unsigned mode = create ? Database::OWRITER | Database::OCREATE : Database::OWRITER;
    expect(database_.open(path, mode), "open");
  }

  bool was_repaired() override { return log_.repaired(); }
  void set(const std::string& key, const std::string& value) override {
    expect(database_.set(key, value), "set");
  }
  void append(const std::string& key, const std::string& value) override {
    expect(database_.append(key, value), "append");
  }
  void remove(const std::string& key) override {
    expect(database_.remove(key) || database_.error() == kyotocabinet::BasicDB::Error::NOREC,
           "remove");
  }
  void synchronise() override { expect(database_.synchronize(true), "synchronize"); }
  void check(const Model&) override {}  // its program does that
  Model records() override {
    Model records;
    const std::unique_ptr<kyotocabinet::BasicDB::Cursor> cursor(database_.cursor());
    std::string key;
    std::string value;
    for (bool more = cursor->jump(); more;) {
      more = cursor->get(&key, &value, true);
      if (more) records[key] = value;
    }
    return records;
  }
  void close() override { expect(database_.close(), "close"); }

 private:
  void expect(bool done, const char* call) const {
    if (!done) die(std::string(call) + ": " + database_.error().message());
  }

  RepairLog log_;
  Database database_;
};

template <class Database>
StoreKind kyoto_kind(const std::string& name, const std::string& suffix) {
  return {"kyoto_" + name, "torture." + suffix, "*." + suffix,
          [](const std::string& path, bool create) {
            return std::make_unique<KyotoStore<Database>>(path, create);
          },
          [name](const std::string& path) -> std::vector<std::string> {
            return {"kc" + name + "mgr", "check", path};
          }};
}

}  // namespace

std::vector<StoreKind> kyoto_kinds() {
  return {kyoto_kind<kyotocabinet::HashDB>("hash", "kch"),
          kyoto_kind<kyotocabinet::TreeDB>("tree", "kct")};
}

}  // namespace pawl::retrofit
