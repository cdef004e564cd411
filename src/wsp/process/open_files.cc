#include "wsp/process/open_files.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tuple>

namespace pawl::wsp {

namespace {

constexpr long kSame = 0;
constexpr long kLess = 1;

long compare_files(pid_t process, int one, int other) {
  return ::syscall(SYS_kcmp, process, process, KCMP_FILE, one, other);
}

}  // namespace

bool OpenFiles::Order::operator()(const File& one, const File& other) const {
  const auto known = [](const File& file) {
    return std::tie(file.kind, file.device, file.inode, file.identity);
  };
  if (known(one) != known(other)) return known(one) < known(other);
  return compare_files(process, one.number, other.number) == kLess;
}

int OpenFiles::add(const SavedDescriptor& descriptor) {
  const DescriptorFacts& facts = descriptor.facts;
  const auto [found, is_first] =
      files_.insert({facts.kind, facts.device, facts.inode, descriptor.identity, facts.number});
  if (is_first) return -1;
  // Neither is less where the kernel does not answer, too.
  return compare_files(process_, facts.number, found->number) == kSame ? found->number : -1;
}

}  // namespace pawl::wsp
