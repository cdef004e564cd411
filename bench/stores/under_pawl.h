// A store that runs as it is, or under `pawl run`.
#pragma once

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "stores/kinds.h"

namespace pawl::bench {

// `make` opens the store at a path.
template <class Make>
StoreKind under_or_not(const std::string& store, const std::string& product,
                       const std::string& setting, Under under, Make make) {
  if (under == Under::nothing) {
    return {.name = store + "-synchronize",
            .product = product,
            .setting = setting + "; NOT atomic",
            .open = [make](const StoreSetup& setup) { return make(setup.directory + "/store.db"); },
            .role = Role::rival};
  }
  return {.name = store + "-pawl",
          .product = product,
          .setting = setting + ", under pawl run",
          .open =
              [make](const StoreSetup& setup) {
                const std::string path = setup.directory + "/" + kUnderPawl;
                auto opened = make(path);
                // A change makes even a store that maps late map its file.
                opened->put("first", "");
                opened->erase("first");
                if (!std::filesystem::exists(path + ".pawl"))
                  throw std::runtime_error(path +
                                           " is not under Pawl; ./dev bench retrofit starts "
                                           "this program as it must be");
                return opened;
              },
          .role = Role::pawl};
}

}  // namespace pawl::bench
