// A hash map in a pool of libpmemobj, with a transaction for each change: an entry holds key and
// value, and a change links a new entry in place of the old one, so that the undo log holds links
// and no values.
#include <fmt/core.h>
#include <libpmemobj.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "stores/kinds.h"

namespace pawl::bench {
namespace {

constexpr const char* kLayout = "pawl-bench-stores";
// A pool has a fixed size; its allocator's blocks for a value of 1 KiB are not much larger.
constexpr std::uint64_t kPoolBytesMin = std::uint64_t{64} << 20;
constexpr std::uint64_t kPoolBytesPerKey = std::uint64_t{4} << 10;
constexpr std::uint64_t kTypeOfBuckets = 1;
constexpr std::uint64_t kTypeOfEntry = 2;

struct PoolEntry {
  PMEMoid next;
  std::uint64_t key_bytes;
  std::uint64_t value_bytes;
  // The bytes of the key, then those of the value.
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  std::string_view key() { return {bytes(), key_bytes}; }
  std::string_view value() { return {bytes() + key_bytes, value_bytes}; }
};

struct Root {
  std::uint64_t bucket_count;
  PMEMoid buckets;  // as many first entries
};

[[noreturn]] void fail() { throw std::runtime_error(::pmemobj_errormsg()); }

PoolEntry* entry_at(PMEMoid place) { return static_cast<PoolEntry*>(::pmemobj_direct(place)); }

class PmemobjStore final : public Store {
 public:
  explicit PmemobjStore(const StoreSetup& setup) {
    // Would make flushes of the processor's caches do for a file that needs msync.
    ::unsetenv("PMEM_IS_PMEM_FORCE");
    const std::string path = setup.directory + "/store.pool";
    const std::uint64_t bytes = kPoolBytesMin + setup.keys_max * kPoolBytesPerKey;
    pool_ = ::pmemobj_open(path.c_str(), kLayout);
    if (pool_ == nullptr && errno == ENOENT)
      pool_ = ::pmemobj_create(path.c_str(), kLayout, bytes, 0600);
    if (pool_ == nullptr) fail();
    root_ = static_cast<Root*>(::pmemobj_direct(::pmemobj_root(pool_, sizeof(Root))));
    if (root_ == nullptr) fail();
    if (root_->bucket_count == 0) make_buckets(setup.keys_max);
  }
  ~PmemobjStore() override { ::pmemobj_close(pool_); }

  void put(std::string_view key, std::string_view value) override {
    update([&] {
      PMEMoid* const link = link_of(key);
      const PMEMoid old = *link;
      const PMEMoid fresh =
          ::pmemobj_tx_alloc(sizeof(PoolEntry) + key.size() + value.size(), kTypeOfEntry);
      if (OID_IS_NULL(fresh)) fail();
      PoolEntry* const entry = entry_at(fresh);
      entry->next = OID_IS_NULL(old) ? OID_NULL : entry_at(old)->next;
      entry->key_bytes = key.size();
      entry->value_bytes = value.size();
      std::memcpy(entry->bytes(), key.data(), key.size());
      std::memcpy(entry->bytes() + key.size(), value.data(), value.size());
      change(link, fresh);
      if (!OID_IS_NULL(old) && ::pmemobj_tx_free(old) != 0) fail();
    });
  }
  void erase(std::string_view key) override {
    update([&] {
      PMEMoid* const link = link_of(key);
      const PMEMoid old = *link;
      if (OID_IS_NULL(old)) throw std::runtime_error("no such key");
      change(link, entry_at(old)->next);
      if (::pmemobj_tx_free(old) != 0) fail();
    });
  }
  void begin_batch() override {
    if (::pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) != 0) fail();
    in_batch_ = true;
  }
  void commit_batch() override {
    in_batch_ = false;
    ::pmemobj_tx_commit();
    if (::pmemobj_tx_end() != 0) fail();
  }
  bool get(std::string_view key, std::string& value) override {
    const PMEMoid found = *link_of(key);
    if (OID_IS_NULL(found)) return false;
    value = entry_at(found)->value();
    return true;
  }

 private:
  void make_buckets(std::uint64_t count) {
    begin_batch();
    if (::pmemobj_tx_add_range_direct(root_, sizeof *root_) != 0) fail();
    root_->buckets = ::pmemobj_tx_zalloc(count * sizeof(PMEMoid), kTypeOfBuckets);
    if (OID_IS_NULL(root_->buckets)) fail();
    root_->bucket_count = count;
    commit_batch();
  }
  // Where the key's entry hangs, or would.
  PMEMoid* link_of(std::string_view key) {
    auto* const buckets = static_cast<PMEMoid*>(::pmemobj_direct(root_->buckets));
    PMEMoid* link = buckets + std::hash<std::string_view>{}(key) % root_->bucket_count;
    while (!OID_IS_NULL(*link) && entry_at(*link)->key() != key) link = &entry_at(*link)->next;
    return link;
  }
  static void change(PMEMoid* link, PMEMoid to) {
    if (::pmemobj_tx_add_range_direct(link, sizeof *link) != 0) fail();
    *link = to;
  }
  // A transaction that fails is left open: the process ends with the exception, and recovery
  // undoes it.
  template <class Change>
  void update(const Change& make) {
    if (in_batch_) {
      make();
      return;
    }
    begin_batch();
    make();
    commit_batch();
  }

  PMEMobjpool* pool_ = nullptr;
  Root* root_ = nullptr;
  bool in_batch_ = false;
};

}  // namespace

StoreKind pmemobj_kind() {
  return {"pmemobj", fmt::format("libpmemobj {}.{}", PMEMOBJ_MAJOR_VERSION, PMEMOBJ_MINOR_VERSION),
          "transactions on a hash map; msync, since the file is not persistent memory; a batch is "
          "a transaction",
          [](const StoreSetup& setup) { return std::make_unique<PmemobjStore>(setup); }};
}

}  // namespace pawl::bench
