// The stores that were compiled in.
#pragma once

#include <string>
#include <vector>

#include "stores/store.h"

namespace pawl::bench {

// One to three kinds for each file beside this one.
StoreKind pawl_kind();
StoreKind pawl_store_kind();
StoreKind pawl_sleeping_kind();
StoreKind sqlite_rollback_kind();
StoreKind sqlite_wal_kind();
StoreKind kyoto_kind();
StoreKind tkrzw_kind();
StoreKind leveldb_kind();
StoreKind rocksdb_kind();
StoreKind lmdb_kind();
StoreKind gdbm_kind();
StoreKind pmemobj_kind();
StoreKind volatile_kind();
StoreKind floor_kind();
StoreKind floor_awake_kind();

// Stores that change their memory-mapped file and synchronise it: as they are, and the same under
// `pawl run`, in a file of the name kUnderPawl, which it is told to take.  The first open of one
// under Pawl throws std::runtime_error where the program does not run so.
inline constexpr const char* kUnderPawl = "under-pawl.db";
enum class Under { nothing, pawl };
StoreKind kyoto_synchronize_kind(Under under);
StoreKind tkrzw_synchronize_kind(Under under);
StoreKind lmdb_synchronize_kind(Under under);
StoreKind gdbm_synchronize_kind(Under under);

// Those to compare, Pawl first, the floors last.
std::vector<StoreKind> compared_kinds();
// Names of those that lack their library.
std::vector<std::string> missing_kinds();

}  // namespace pawl::bench
