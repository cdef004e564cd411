#include "common/failure.h"

#include <cerrno>
#include <cstring>

namespace pawl::bench {

void fail_with_errno(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace pawl::bench
