#include "stores/kinds.h"

namespace pawl::bench {
namespace {

struct Entry {
  const char* name;
  StoreKind (*kind)();  // null: its library was not found when this was built
};

// The libraries that were found say so by a definition.
constexpr Entry kEntries[] = {
    {"pawl", pawl_kind},
#ifdef BENCH_WITH_MARKS
    {"pawl-store", pawl_store_kind},
#else
    {"pawl-store", nullptr},
#endif
    {"pawl-sleeping", pawl_sleeping_kind},
#ifdef BENCH_WITH_SQLITE
    {"sqlite-rollback", sqlite_rollback_kind},
    {"sqlite-wal", sqlite_wal_kind},
#else
    {"sqlite-rollback", nullptr},
    {"sqlite-wal", nullptr},
#endif
#ifdef BENCH_WITH_KYOTO
    {"kyoto", kyoto_kind},
#else
    {"kyoto", nullptr},
#endif
#ifdef BENCH_WITH_TKRZW
    {"tkrzw", tkrzw_kind},
#else
    {"tkrzw", nullptr},
#endif
#ifdef BENCH_WITH_LEVELDB
    {"leveldb", leveldb_kind},
#else
    {"leveldb", nullptr},
#endif
#ifdef BENCH_WITH_ROCKSDB
    {"rocksdb", rocksdb_kind},
#else
    {"rocksdb", nullptr},
#endif
#ifdef BENCH_WITH_LMDB
    {"lmdb", lmdb_kind},
#else
    {"lmdb", nullptr},
#endif
#ifdef BENCH_WITH_GDBM
    {"gdbm", gdbm_kind},
#else
    {"gdbm", nullptr},
#endif
#ifdef BENCH_WITH_PMEMOBJ
    {"pmemobj", pmemobj_kind},
#else
    {"pmemobj", nullptr},
#endif
    {"floor", floor_kind},
    {"floor-awake", floor_awake_kind},
};

}  // namespace

std::vector<StoreKind> compared_kinds() {
  std::vector<StoreKind> kinds;
  for (const Entry& entry : kEntries) {
    if (entry.kind != nullptr) kinds.push_back(entry.kind());
  }
  return kinds;
}

std::vector<std::string> missing_kinds() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) {
    if (entry.kind == nullptr) names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace pawl::bench
