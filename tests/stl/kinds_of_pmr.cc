// Containers of std::pmr in the heap, and in containers there.
#include <map>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <vector>

#include "play.h"

namespace stl_test {

Kinds kinds_of_pmr() {
  namespace pmr = std::pmr;
  return {
      {"pmr_string", play<pmr::string, std::string>},
      {"pmr_map", play<pmr::map<pmr::string, pmr::vector<pmr::string>>,
                       std::map<std::string, std::vector<std::string>>>},
      {"pmr_unordered_map", play<pmr::unordered_map<pmr::string, pmr::list<pmr::string>>,
                                 std::unordered_map<std::string, std::list<std::string>>>},
      {"pmr_in_pawl", play<pawl::map<pawl::string, pmr::vector<pmr::string>>,
                           std::map<std::string, std::vector<std::string>>>},
  };
}

}  // namespace stl_test
