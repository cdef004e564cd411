// What the program may do, for what is done in its name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "medium/status.h"
#include "wsp/process/capabilities.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// While it lives, this thread reaches files as the program does: with its users, groups and
// effective capabilities (credentials(7): those of file systems).  Nothing changes where they are
// ours.  Not to be nested.
class ProgramRights {
 public:
  // From now on, in this process, which becomes the program: its real and effective users and
  // groups, too.  The kernel asks what is made or opened then for those of whoever made it (rules
  // of packets, cgroups, SO_PEERCRED), and counts it for the real user.  The program's user may
  // signal such a process, and change its priority: never one that supervises.
  static void take_whole_ones() { are_whole_ = true; }

  // EPERM where we may not become the program's user.
  static Result<ProgramRights> take(const SavedProcess& program);
  // To make a socket or a pipe that is its owner's at once, be that another user, where we may.
  static Result<ProgramRights> take(const SavedProcess& program, const DescriptorFacts& object);
  // Of a thread that lives.
  static Result<ProgramRights> take(pid_t thread);
  ProgramRights(ProgramRights&& other) noexcept;
  ProgramRights& operator=(ProgramRights&&) = delete;
  ProgramRights(const ProgramRights&) = delete;
  ~ProgramRights();  // keeps errno; asserts that it has the thread's own rights again

 private:
  struct Users {
    uid_t real = 0;
    uid_t effective = 0;
    uid_t of_files = 0;
    bool operator==(const Users&) const = default;
  };
  struct Credentials {
    Users users;
    Users groups;
    std::vector<gid_t> others;
    Capabilities capabilities;
    bool operator==(const Credentials&) const = default;
  };

  ProgramRights() = default;
  static bool read(Credentials& into);
  bool change(const Credentials& from, const Credentials& to) const;
  Status become(const SavedProcess& program);

  static bool are_whole_;

  bool is_changed_ = false;
  bool has_kept_capabilities_ = false;  // PR_SET_KEEPCAPS
  Credentials own_;
};

}  // namespace pawl::wsp
