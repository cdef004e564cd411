// The module of the structures in a pool of libpmemobj.
#include <libpmemobj.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>

#include "common/failure.h"
#include "snapshot/modules/pmem_latency.h"
#include "snapshot/modules/pmemobj_structures.h"
#include "snapshot/modules/table.h"
#include "snapshot/modules/values.h"
#include "snapshot/structure.h"

namespace pawl::bench {
namespace {

// A pool has a fixed size; blocks of libpmemobj's allocator have 128 bytes at least.
constexpr std::uint64_t kPoolBytesMin = std::uint64_t{32} << 20;
constexpr std::uint64_t kPoolBytesPerItem = 512;

class PmemobjStructures final : public Structure {
 public:
  explicit PmemobjStructures(const StructureSetup& setup)
      : setup_(setup),
        buckets_(setup.form == Form::table ? setup.items_max / kPairsOfBucket + 1 : 1),
        out_(new char[kScanPairsMax * kPairValueBytes]) {
    pool_ = ::pmemobj_create(setup.path, "snapshot",
                             kPoolBytesMin + setup.items_max * kPoolBytesPerItem, 0600);
    if (pool_ == nullptr) throw Unavailable(::pmemobj_errormsg());
    expect(::structures_make(pool_, buckets_));
  }
  ~PmemobjStructures() override { ::pmemobj_close(pool_); }

  std::uint64_t serve(const Request* requests, std::size_t count) override {
    set_pmem_latency(setup_.line_ns, setup_.fence_ns);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += serve(requests[i]);
    return sum;
  }
  // A transaction in a transaction commits with the outer one, which must not be too large.
  void fill(const Request* requests, std::size_t count) override {
    set_pmem_latency(0, 0);
    for (std::size_t i = 0; i < count;) {
      if (::pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) != 0) expect(-1);
      for (const std::size_t end = std::min(count, i + kFillCommit); i < end; ++i)
        serve(requests[i]);
      ::pmemobj_tx_commit();
      if (::pmemobj_tx_end() != 0) expect(-1);
    }
  }
  MediumUse medium_use() const override { return pmem_use(); }

 private:
  static constexpr std::size_t kFillCommit = 100;

  static void expect(int result) {
    if (result != 0)
      throw std::runtime_error(std::string("a request was not served: ") + ::pmemobj_errormsg());
  }
  std::uint64_t bucket_of(std::uint64_t key) const { return hash_of_key(key) % buckets_; }

  std::uint64_t serve(const Request& request) {
    const std::uint64_t key = request.key;
    char* const out = out_.get();
    std::uint64_t sum = 0;
    switch (request.action) {
      case Action::list_step:
        expect(::list_step(pool_, &sum));
        return sum;
      case Action::list_append:
        expect(::list_append(pool_, key));
        return 0;
      case Action::list_remove_head:
        expect(::list_remove_head(pool_, &sum));
        return sum;
      case Action::tree_lookup:
        expect(::tree_lookup(pool_, key, &sum));
        return sum;
      case Action::tree_walk:
        expect(::tree_walk(pool_, &sum));
        return sum;
      case Action::tree_insert:
        expect(::tree_insert(pool_, key, ~key));
        return 0;
      case Action::tree_erase:
        expect(::tree_erase(pool_, key));
        return 0;
      case Action::table_read:
        expect(::table_read(pool_, bucket_of(key), key, out));
        return sum_of(out);
      case Action::table_scan: {
        const std::uint32_t pairs = ::table_scan(pool_, bucket_of(key), request.pairs, out);
        for (std::uint32_t i = 0; i < pairs; ++i) sum += sum_of(out + i * kPairValueBytes);
        return sum;
      }
      case Action::table_insert:
        expect(::table_insert(pool_, bucket_of(key), key, values_[request.value]));
        return 0;
      case Action::table_update:
        expect(::table_update(pool_, bucket_of(key), key, values_[request.value]));
        return 0;
      case Action::table_modify:
        expect(::table_read(pool_, bucket_of(key), key, out));
        sum = sum_of(out);
        change_all(out);
        expect(::table_update(pool_, bucket_of(key), key, out));
        return sum;
    }
    return 0;
  }

  const StructureSetup setup_;
  const std::uint64_t buckets_;
  const Values values_;
  const std::unique_ptr<char[]> out_;
  PMEMobjpool* pool_ = nullptr;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Structure* make_structure(
    const StructureSetup* setup) {
  return new PmemobjStructures(*setup);
}

}  // namespace pawl::bench
