// run: ! echo '#include <boost/version.hpp>' | c++ -E - >it.i || { c++ -std=c++17 -Wall -Werror boost.cc -o it && pawl run --ms-async sync --atomic '*.segment' -- ./it; }
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/map.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>
#include <functional>
#include <utility>

using Segment = boost::interprocess::managed_mapped_file::segment_manager;
using Elements = boost::interprocess::allocator<std::pair<const int, int>, Segment>;
using Map = boost::interprocess::map<int, int, std::less<int>, Elements>;

int main() {
  {
    boost::interprocess::managed_mapped_file made(boost::interprocess::create_only, "shop.segment", 65536);
    made.construct<Map>("stock")(made.get_segment_manager());
  }
  FRAGMENT
  return stock.size() == 1 ? 0 : 1;
}
