#include "torture/store.h"

namespace pawl::retrofit {

std::vector<StoreKind> store_kinds() {
  std::vector<StoreKind> all;
  [[maybe_unused]] const auto add = [&all](const std::vector<StoreKind>& kinds) {
    all.insert(all.end(), kinds.begin(), kinds.end());
  };
#ifdef STORES_WITH_KYOTO
  add(kyoto_kinds());
#endif
#ifdef STORES_WITH_TKRZW
  add(tkrzw_kinds());
#endif
#ifdef STORES_WITH_LMDB
  add(lmdb_kinds());
#endif
#ifdef STORES_WITH_GDBM
  add(gdbm_kinds());
#endif
#ifdef STORES_WITH_SLAPD
  add(slapd_kinds());
#endif
  return all;
}

}  // namespace pawl::retrofit
