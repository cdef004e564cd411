// Boost.Interprocess's managed_mapped_file with a map of strings in it.  Its flush() is
// msync(MS_ASYNC), which on Linux does nothing, and under `pawl run --ms-async sync` is a commit.
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/map.hpp>
#include <boost/interprocess/containers/string.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>
#include <boost/version.hpp>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <system_error>

#include "retrofit/kinds.h"
#include "stores/under_pawl.h"

namespace pawl::bench {
namespace {

namespace bi = boost::interprocess;

constexpr std::size_t kSegmentBytesMin = std::size_t{1} << 20;
// Of a key and its value: the node of the map, two strings, and what lies between blocks.
constexpr std::size_t kBytesPerKey = 2048;
constexpr std::size_t kKeysMax = 100'000;

class BoostStore final : public Store {
 public:
  enum class Commit { flush, msync };
  BoostStore(const std::string& path, Commit commit)
      : commit_(commit),
        segment_(bi::open_or_create, path.c_str(), kSegmentBytesMin + kKeysMax * kBytesPerKey),
        records_(*segment_.find_or_construct<Records>("records")(std::less<>(), allocator())) {}

  void put(std::string_view key, std::string_view value) override {
    Records::iterator found = records_.find(key);
    if (found == records_.end())
      found = records_.emplace(Text(key, allocator()), Text(allocator())).first;
    found->second.assign(value.data(), value.size());
    commit_unless_in_batch();
  }
  void erase(std::string_view key) override {
    records_.erase(records_.find(key));
    commit_unless_in_batch();
  }
  void begin_batch() override { in_batch_ = true; }
  void commit_batch() override {
    in_batch_ = false;
    commit_unless_in_batch();
  }
  bool get(std::string_view key, std::string& value) override {
    const Records::iterator found = records_.find(key);
    if (found == records_.end()) return false;
    value.assign(found->second.data(), found->second.size());
    return true;
  }

 private:
  template <class T>
  using Allocator = bi::allocator<T, bi::managed_mapped_file::segment_manager>;
  using Text = bi::basic_string<char, std::char_traits<char>, Allocator<char>>;
  using Records = bi::map<Text, Text, std::less<>, Allocator<std::pair<const Text, Text>>>;

  bi::managed_mapped_file::segment_manager* allocator() { return segment_.get_segment_manager(); }

  void commit_unless_in_batch() {
    if (in_batch_) return;
    if (commit_ == Commit::flush) {
      if (!segment_.flush()) throw std::runtime_error("managed_mapped_file::flush() failed");
      return;
    }
    // The region begins where its file does, some bytes before the segment.
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(segment_.get_address()) & ~(page - 1);
    if (::msync(reinterpret_cast<void*>(address), segment_.get_size(), MS_SYNC) != 0)
      throw std::system_error(errno, std::generic_category(), "msync");
  }

  const Commit commit_;
  bool in_batch_ = false;
  bi::managed_mapped_file segment_;
  Records& records_;
};

std::string version() {
  return fmt::format("Boost {}.{}", BOOST_VERSION / 100'000, BOOST_VERSION / 100 % 1000);
}

}  // namespace

StoreKind boost_flush_kind() {
  return {.name = "boost-flush",
          .product = version(),
          .setting = "managed_mapped_file::flush() after each operation or batch; NOT durable",
          .open = [](const StoreSetup& setup) {
            return std::make_unique<BoostStore>(setup.directory + "/store",
                                                BoostStore::Commit::flush);
          }};
}

StoreKind boost_synchronize_kind(Under under) {
  if (under == Under::nothing) {
    return under_or_not("boost", version(), "msync(MS_SYNC) after each operation or batch", under,
                        [](const std::string& path) {
                          return std::make_unique<BoostStore>(path, BoostStore::Commit::msync);
                        });
  }
  return under_or_not(
      "boost", version(), "managed_mapped_file::flush() after each operation or batch", under,
      [](const std::string& path) {
        const char* const asynchronous = std::getenv("PAWL_MS_ASYNC");
        if (asynchronous == nullptr || std::string_view(asynchronous) != "sync")
          throw std::runtime_error(path +
                                   " is not under Pawl, or its flush() does not wait; ./dev "
                                   "bench retrofit starts this program as it must be");
        return std::make_unique<BoostStore>(path, BoostStore::Commit::flush);
      });
}

}  // namespace pawl::bench
