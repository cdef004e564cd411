#include "retrofit/kinds.h"

namespace pawl::bench {

std::vector<Retrofit> retrofits() {
  std::vector<Retrofit> found;
#ifdef BENCH_WITH_KYOTO
  found.push_back({"kyoto", kyoto_synchronize_kind, kyoto_kind});
#endif
#ifdef BENCH_WITH_TKRZW
  found.push_back({"tkrzw", tkrzw_synchronize_kind, tkrzw_kind});
#endif
#ifdef BENCH_WITH_LMDB
  found.push_back({"lmdb", lmdb_synchronize_kind, lmdb_kind});
#endif
#ifdef BENCH_WITH_GDBM
  found.push_back({"gdbm", gdbm_synchronize_kind, nullptr});
#endif
#ifdef BENCH_WITH_BOOST
  found.push_back({"boost", boost_synchronize_kind, boost_flush_kind});
#endif
  return found;
}

}  // namespace pawl::bench
