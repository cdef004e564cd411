// The module of the structures in plain memory.  It is compiled twice: as any program is, and by
// pawl-clang++, with marks after its stores.
#include <memory>

#include "snapshot/modules/list.h"
#include "snapshot/modules/pools.h"
#include "snapshot/modules/table.h"
#include "snapshot/modules/tree.h"
#include "snapshot/modules/values.h"
#include "snapshot/structure.h"

namespace pawl::bench {
namespace {

constexpr std::size_t kFillCommit = 1000;  // operations

[[noreturn]] void not_of_this() { throw std::runtime_error("no such action on this structure"); }

// `Served` has bool serve(request, sum): true when something was changed.
template <class Pool, class Served>
class ServedOn final : public Structure {
 public:
  explicit ServedOn(const StructureSetup& setup) : pool_(setup), served_(pool_, setup) {
    pool_.commit();
  }

  std::uint64_t serve(const Request* requests, std::size_t count) override {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (served_.serve(requests[i], sum)) pool_.commit();
    }
    return sum;
  }
  void fill(const Request* requests, std::size_t count) override {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      served_.serve(requests[i], sum);
      if (i % kFillCommit == kFillCommit - 1) pool_.commit();
    }
    pool_.commit();
  }
  MediumUse medium_use() const override { return pool_.use(); }

 private:
  Pool pool_;
  Served served_;
};

template <class Pool>
class ServedList {
 public:
  ServedList(Pool& pool, const StructureSetup&) : list_(pool) {}
  bool serve(const Request& request, std::uint64_t& sum) {
    switch (request.action) {
      case Action::list_step:
        sum += list_.step();
        return false;
      case Action::list_append:
        list_.append(request.key);
        return true;
      case Action::list_remove_head:
        sum += list_.remove_head();
        return true;
      default:
        not_of_this();
    }
  }

 private:
  List<Pool> list_;
};

template <class Pool>
class ServedTree {
 public:
  ServedTree(Pool& pool, const StructureSetup&) : tree_(pool) {}
  bool serve(const Request& request, std::uint64_t& sum) {
    switch (request.action) {
      case Action::tree_lookup:
        sum += tree_.lookup(request.key);
        return false;
      case Action::tree_walk:
        sum += tree_.walk();
        return false;
      case Action::tree_insert:
        tree_.insert(request.key, ~request.key);
        return true;
      case Action::tree_erase:
        tree_.erase(request.key);
        return true;
      default:
        not_of_this();
    }
  }

 private:
  Tree<Pool> tree_;
};

template <class Pool>
class ServedTable {
 public:
  ServedTable(Pool& pool, const StructureSetup& setup)
      : table_(pool, setup.items_max), out_(new char[kScanPairsMax * kPairValueBytes]) {}
  bool serve(const Request& request, std::uint64_t& sum) {
    char* const out = out_.get();
    switch (request.action) {
      case Action::table_read:
        table_.read(request.key, out);
        sum += sum_of(out);
        return false;
      case Action::table_scan: {
        const std::uint32_t pairs = table_.scan(request.key, request.pairs, out);
        for (std::uint32_t i = 0; i < pairs; ++i) sum += sum_of(out + i * kPairValueBytes);
        return false;
      }
      case Action::table_insert:
        table_.insert(request.key, values_[request.value]);
        return true;
      case Action::table_update:
        table_.update(request.key, values_[request.value]);
        return true;
      case Action::table_modify:
        table_.read(request.key, out);
        sum += sum_of(out);
        change_all(out);
        table_.update(request.key, out);
        return true;
      default:
        not_of_this();
    }
  }

 private:
  Table<Pool> table_;
  const Values values_;
  const std::unique_ptr<char[]> out_;
};

template <class Pool>
Structure* make(const StructureSetup& setup) {
  switch (setup.form) {
    case Form::list:
      return new ServedOn<Pool, ServedList<Pool>>(setup);
    case Form::tree:
      return new ServedOn<Pool, ServedTree<Pool>>(setup);
    case Form::table:
      return new ServedOn<Pool, ServedTable<Pool>>(setup);
  }
  not_of_this();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Structure* make_structure(
    const StructureSetup* setup) {
  const std::string system = setup->system;
  if (system.starts_with("none")) return make<NoPool>(*setup);
  if (system == "fence") return make<FencePool>(*setup);
  if (system == "lines") return make<LinesPool>(*setup);
  if (system.starts_with("msync")) return make<MsyncPool>(*setup);
  if (system.starts_with("pawl")) return make<PawlPool>(*setup);
  throw std::runtime_error("there is no system " + system);
}

}  // namespace pawl::bench
