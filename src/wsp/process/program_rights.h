// What the program may do with files, for what is done in its name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// While it lives, this thread reaches files as the program does: with its users, groups and
// effective capabilities (credentials(7): those of file systems).  Nothing changes where they are
// ours.  Not to be nested.
class ProgramRights {
 public:
  // EPERM where we may not become the program's user.
  static Result<ProgramRights> take(const SavedProcess& program);
  // Of a thread that lives.
  static Result<ProgramRights> take(pid_t thread);
  ProgramRights(ProgramRights&& other) noexcept;
  ProgramRights& operator=(ProgramRights&&) = delete;
  ProgramRights(const ProgramRights&) = delete;
  ~ProgramRights();  // keeps errno; asserts that it has the thread's own rights again

 private:
  ProgramRights() = default;
  Status become(const SavedProcess& program);

  bool is_changed_ = false;
  uid_t user_ = 0;
  gid_t group_ = 0;
  std::vector<gid_t> groups_;
  std::uint64_t effective_ = 0;
};

}  // namespace pawl::wsp
