// Which of a program's descriptors are the same open file: the kernel orders open files (kcmp(2)),
// so that finding one among n asks it log n times.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

class OpenFiles {
 public:
  // Whose descriptors do not change meanwhile.
  explicit OpenFiles(pid_t process) : process_(process), files_(Order{process}) {}

  // The number of the first descriptor that was added and is the same open file, or -1.  ENOTSUP
  // where the kernel does not say.
  Result<int> add(const SavedDescriptor& descriptor);

 private:
  struct File {
    std::uint32_t kind;
    std::uint64_t device;
    std::uint64_t inode;
    std::uint64_t identity;
    std::uint32_t flags;  // of the open file
    int number;
  };
  // Of two that differ in nothing else the kernel is asked.
  struct Order {
    pid_t process;
    bool operator()(const File& one, const File& other) const;
  };

  pid_t process_;
  std::set<File, Order> files_;
};

}  // namespace pawl::wsp
