// Boost.Interprocess's managed_mapped_file, as a program uses it that knows nothing of Pawl.
//
//   boost_writer make PATH                    makes the segment
//   boost_writer write flush|msync PATH SEED FIRST
//       Does operation FIRST, FIRST + 1, ... with one commit each, and says so on stdout.  The
//       commit is managed_mapped_file::flush(), which is msync(MS_ASYNC), or msync(MS_SYNC).
//   boost_writer audit PATH SEED LEAST MOST   opens the segment, lets Boost check it, and says
//       "found N": it holds operations 0 to N - 1, and LEAST <= N <= MOST.  Ends with 1 and says
//       why when it does not.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/map.hpp>
#include <boost/interprocess/containers/string.hpp>
#include <boost/interprocess/containers/vector.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace bi = boost::interprocess;

constexpr std::size_t kSegmentBytes = 1 << 20;
constexpr std::size_t kSegmentBytesMax = 16 << 20;
constexpr std::size_t kGrowthBytes = 64 << 10;
constexpr unsigned long kOperationsBetweenOpenings = 1000;
constexpr unsigned kKeys = 200;
constexpr std::size_t kValueBytesMax = 6000;
constexpr std::size_t kRowsMax = 100;

[[noreturn]] void die(const std::string& what) {
  std::cerr << "boost_writer: " << what << '\n';
  std::exit(1);
}

// ---------------------------------------------------------------------------------- operations

// The same for the same seed and number.
struct Operation {
  enum class Kind { set, append, remove, add_row, drop_rows } kind;
  std::string key;
  std::string value;
};

Operation operation(unsigned long seed, unsigned long number) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  constexpr Operation::Kind kKinds[] = {Operation::Kind::set,     Operation::Kind::set,
                                        Operation::Kind::append,  Operation::Kind::remove,
                                        Operation::Kind::add_row, Operation::Kind::drop_rows};
  Operation made{kKinds[random() % 6], "key-" + std::to_string(random() % kKeys), ""};
  const std::size_t size = random() % 10 == 0 ? random() % kValueBytesMax : random() % 200;
  made.value.assign(size, static_cast<char>('a' + number % 26));
  return made;
}

// On the containers of Boost, and on those of the standard library, alike.
template <class Records, class Rows, class Make>
void apply(const Operation& operation, Records& records, Rows& rows, const Make& make) {
  switch (operation.kind) {
    case Operation::Kind::set:
    case Operation::Kind::append: {
      auto& value = records.emplace(make(operation.key), make("")).first->second;
      const bool replaces = operation.kind == Operation::Kind::set ||
                            value.size() + operation.value.size() > kValueBytesMax;
      if (replaces) value.clear();
      value.append(operation.value.c_str());
      break;
    }
    case Operation::Kind::remove:
      records.erase(make(operation.key));
      break;
    case Operation::Kind::add_row:
      if (rows.size() < kRowsMax) rows.insert(rows.begin(), make(operation.value));
      break;
    case Operation::Kind::drop_rows:
      if (!rows.empty()) rows.erase(rows.begin() + static_cast<long>(rows.size() / 2));
      break;
  }
}

struct Model {
  std::map<std::string, std::string> records;
  std::vector<std::string> rows;
  bool operator==(const Model& other) const = default;
};

void apply(const Operation& operation, Model& model) {
  apply(operation, model.records, model.rows, [](const std::string& text) { return text; });
}

// -------------------------------------------------------------------------------- what is tried

class Store {
 public:
  explicit Store(const std::string& path) : segment_(bi::open_only, path.c_str()) {
    records_ = segment_.find<Records>("records").first;
    rows_ = segment_.find<Rows>("rows").first;
    if (records_ == nullptr || rows_ == nullptr) die("the segment has lost its named objects");
  }

  static void make(const std::string& path) {
    bi::managed_mapped_file segment(bi::create_only, path.c_str(), kSegmentBytes);
    const auto allocator = segment.get_segment_manager();
    segment.construct<Records>("records")(std::less<Text>(), allocator);
    segment.construct<Rows>("rows")(allocator);
  }

  static void grow(const std::string& path) {
    if (!bi::managed_mapped_file::grow(path.c_str(), kGrowthBytes)) die("cannot grow");
  }

  void apply(const Operation& operation) {
    const auto allocator = segment_.get_segment_manager();
    ::apply(operation, *records_, *rows_,
            [&](const std::string& text) { return Text(text.c_str(), allocator); });
  }

  void commit(bool by_flush) {
    if (by_flush) {
      if (!segment_.flush()) die("flush");
      return;
    }
    // The region begins where its file does, some bytes before the segment.
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(segment_.get_address()) & ~(page - 1);
    if (msync(reinterpret_cast<void*>(address), segment_.get_size(), MS_SYNC) != 0) die("msync");
  }

  bool is_sane() { return segment_.check_sanity(); }
  std::size_t size() const { return segment_.get_size(); }

  Model content() const {
    Model found;
    for (const auto& [key, value] : *records_) found.records[key.c_str()] = value.c_str();
    for (const auto& row : *rows_) found.rows.emplace_back(row.c_str());
    return found;
  }

 private:
  template <class T>
  using Allocator = bi::allocator<T, bi::managed_mapped_file::segment_manager>;
  using Text = bi::basic_string<char, std::char_traits<char>, Allocator<char>>;
  using Records = bi::map<Text, Text, std::less<Text>, Allocator<std::pair<const Text, Text>>>;
  using Rows = bi::vector<Text, Allocator<Text>>;

  bi::managed_mapped_file segment_;
  Records* records_ = nullptr;
  Rows* rows_ = nullptr;
};

// --------------------------------------------------------------------------------------- verbs

int write_operations(bool by_flush, const std::string& path, unsigned long seed,
                     unsigned long number) {
  for (;; ++number) {
    auto store = std::make_unique<Store>(path);
    if (store->size() < kSegmentBytesMax) {
      // A segment grows while it is closed.
      store.reset();
      Store::grow(path);
      store = std::make_unique<Store>(path);
    }
    do {
      store->apply(operation(seed, number));
      store->commit(by_flush);
      const std::string line = std::to_string(number) + "\n";
      if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        return 0;
    } while (++number % kOperationsBetweenOpenings != 0);
    --number;
  }
}

int audit(const std::string& path, unsigned long seed, unsigned long least, unsigned long most) {
  Store store(path);
  if (!store.is_sane()) die("check_sanity() fails");
  const Model found = store.content();
  // There are operations that change nothing: of several numbers that fit, the one nearest to
  // MOST - 1, which is what was acknowledged.
  std::optional<unsigned long> fitting;
  Model expected;
  for (unsigned long number = 0; number <= most; ++number) {
    const bool counts = number >= least && (number < most || !fitting);
    if (counts && found == expected) fitting = number;
    apply(operation(seed, number), expected);
  }
  if (fitting) {
    std::cout << "found " << *fitting << std::endl;
    return 0;
  }
  die("the content is that of no number of operations from " + std::to_string(least) + " to " +
      std::to_string(most));
}

}  // namespace

int main(int count, char** arguments) try {
  const std::vector<std::string> given(arguments + 1, arguments + count);
  if (given.size() == 2 && given[0] == "make") {
    Store::make(given[1]);
    return 0;
  }
  if (given.size() == 5 && given[0] == "write" && (given[1] == "flush" || given[1] == "msync"))
    return write_operations(given[1] == "flush", given[2], std::stoul(given[3]),
                            std::stoul(given[4]));
  if (given.size() == 5 && given[0] == "audit")
    return audit(given[1], std::stoul(given[2]), std::stoul(given[3]), std::stoul(given[4]));
  die("see the head of boost_writer.cc");
} catch (const std::exception& failure) {
  die(failure.what());
}
