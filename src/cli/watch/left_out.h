// The pages of a file that its process changes, and that none of its synchronisations has in its
// range: a commit of a range has the pages of that range and no other.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace pawl::cli::watch {

class LeftOut {
 public:
  // Addresses, on page boundaries.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  // A synchronisation of this range has returned.  Looks at the file's mappings now and then: a
  // page counts when it was changed, and left out for several looks after that.
  void range_synchronised(pid_t thread, Range range, const std::vector<Range>& mapped);
  // What was left out so far is durable.
  void all_synchronised();
  // The addresses mean something else from now on.
  void moved();

  // The most that were found at once.
  std::uint64_t pages() const { return most_; }

 private:
  struct Page {
    std::size_t hash = 0;
    std::size_t looks = 0;  // since it was changed, and with that one
  };
  void add(Range range);
  bool is_outside(std::uint64_t page) const;
  void look(pid_t thread, const std::vector<Range>& mapped);

  std::map<std::uint64_t, std::uint64_t> synchronised_;  // ranges that do not touch: begin and end
  std::map<std::uint64_t, Page> pages_;                  // of the others
  std::uint64_t most_ = 0;
  std::size_t until_look_ = 0;
  std::size_t looks_ = 0;
};

// So many synchronisations come to one look, and so many looks find a page changed.
inline constexpr std::size_t kSynchronisationsToALook = 4;
inline constexpr std::size_t kLooksForLeftOut = 4;

}  // namespace pawl::cli::watch
