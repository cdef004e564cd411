#include "wsp/process/spare_numbers.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace pawl::wsp {

SpareNumbers::SpareNumbers(const SavedProcess& saved) {
  taken_.insert(saved.process.memory_descriptor);
  for (const SavedDescriptor& descriptor : saved.descriptors)
    taken_.insert(descriptor.facts.number);
}

int SpareNumbers::next() {
  while (taken_.contains(at_)) ++at_;
  return at_++;
}

int SpareNumbers::next_closed() {
  for (;;) {
    const int number = next();
    if (::fcntl(number, F_GETFD) < 0) return number;
  }
}

rlim_t descriptors_needed(const SavedProcess& saved) {
  std::set<std::string> files;
  for (const SavedMapping& mapping : saved.mappings) {
    if (mapping.facts.is_memory == 0) files.insert(mapping.name);
  }
  SpareNumbers spare(saved);
  int highest = spare.highest_taken();
  for (std::size_t i = 0; i < files.size() + kOpenMeanwhileMax; ++i)
    highest = std::max(highest, spare.next());
  return static_cast<rlim_t>(highest) + 1;
}

Status check_descriptor_limit(const SavedProcess& saved) {
  const rlim_t needed = descriptors_needed(saved);
  rlimit ours{};
  if (::getrlimit(RLIMIT_NOFILE, &ours) != 0) return FailedCall{errno, "cannot read our limits"};
  if (ours.rlim_max >= needed) return {};
  const rlimit raised{needed, needed};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    return FailedCall{
        errno, fmt::format("the program takes {} descriptors to restore, more than RLIMIT_NOFILE "
                           "lets this command have ({}); start it with prlimit --nofile={} pawl "
                           "wsp restore ...",
                           needed, ours.rlim_max, needed)};
  }
  ::setrlimit(RLIMIT_NOFILE, &ours);
  return {};
}

}  // namespace pawl::wsp
