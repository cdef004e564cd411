// Containers of Boost with pawl::allocator.  The elements of sequences are pawl::string:
// boost::container::vector (1.74) loses the memory of a boost string that it erases, whatever its
// allocator is.  Its deque is its own model, since a range inserted at its begin is not what it is
// with the standard's.
#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/flat_set.hpp>
#include <boost/container/list.hpp>
#include <boost/container/map.hpp>
#include <boost/container/stable_vector.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <boost/unordered_map.hpp>

#include "play.h"

namespace stl_test {
namespace {

namespace bc = boost::container;

using string = bc::basic_string<char, std::char_traits<char>, pawl::allocator<char>>;
template <class T>
using vector = bc::vector<T, pawl::allocator<T>>;
template <class K, class V>
using map = bc::map<K, V, std::less<K>, pawl::allocator<std::pair<const K, V>>>;
template <class K, class V>
using flat_map = bc::flat_map<K, V, std::less<K>, pawl::allocator<std::pair<K, V>>>;
template <class K, class V>
using unordered_map = boost::unordered_map<K, V, pawl::hash<K>, std::equal_to<>,
                                           pawl::allocator<std::pair<const K, V>>>;

using std_vector = std::vector<std::string>;
using std_map = std::map<std::string, std::string>;

}  // namespace

Kinds kinds_of_boost() {
  return {
      {"boost_string", play<string, std::string>},
      {"boost_vector", play<vector<pawl::string>, std_vector>},
      {"boost_deque",
       play<bc::deque<pawl::string, pawl::allocator<pawl::string>>, bc::deque<std::string>>},
      {"boost_list",
       play<bc::list<pawl::string, pawl::allocator<pawl::string>>, std::list<std::string>>},
      {"boost_stable_vector",
       play<bc::stable_vector<pawl::string, pawl::allocator<pawl::string>>, std_vector>},
      {"boost_map", play<map<string, string>, std_map>},
      {"boost_map_of_vectors",
       play<map<string, vector<pawl::string>>, std::map<std::string, std::vector<std::string>>>},
      {"boost_flat_map", play<flat_map<pawl::string, pawl::string>, std_map>},
      {"boost_flat_set", play<bc::flat_set<string, std::less<string>, pawl::allocator<string>>,
                              std::set<std::string>>},
      {"boost_unordered_map", play<unordered_map<pawl::string, pawl::string>,
                                   std::unordered_map<std::string, std::string>>},
  };
}

}  // namespace stl_test
