// How FASEs are kept whole, in a program and in the logs of a file.
#pragma once

#include <cstdint>

#include "fase/abi.h"

namespace pawl::fase {

enum class Scheme : std::uint64_t {
  ido = PAWL_FASE_SCHEME_IDO,        // finished after a crash
  justdo = PAWL_FASE_SCHEME_JUSTDO,  // the same, with smaller regions and locks that are logged
  undo = PAWL_FASE_SCHEME_UNDO,      // undone after a crash
  unprotected = 3,                   // neither: of files only, and while they are open
};

}  // namespace pawl::fase
