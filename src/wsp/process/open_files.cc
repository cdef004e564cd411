#include "wsp/process/open_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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
    return std::tie(file.kind, file.device, file.inode, file.identity, file.flags);
  };
  if (known(one) != known(other)) return known(one) < known(other);
  return compare_files(process, one.number, other.number) == kLess;
}

Result<int> OpenFiles::add(const SavedDescriptor& descriptor) {
  const DescriptorFacts& facts = descriptor.facts;
  const std::uint32_t flags = facts.flags & ~static_cast<std::uint32_t>(O_CLOEXEC);
  const auto [found, is_first] = files_.insert(
      {facts.kind, facts.device, facts.inode, descriptor.identity, flags, facts.number});
  if (is_first) return -1;
  // Neither is less where the kernel does not answer, too.
  const long answer = compare_files(process_, facts.number, found->number);
  if (answer >= 0) return answer == kSame ? found->number : -1;
  return Status::failure(
      ENOTSUP, fmt::format("cannot find out whether the descriptors {} and {} are one open file: "
                           "kcmp(2): {}; allow that call (in a container, CAP_SYS_PTRACE)",
                           found->number, facts.number, std::strerror(errno)));
}

}  // namespace pawl::wsp
