// What a restored program may do: its limits, its user and groups, and its capabilities.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "medium/status.h"
#include "wsp/process/annex.h"
#include "wsp/process/capabilities.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

class GivenRights {
 public:
  // Has a thread make the calls of the list.  ECANCELED: it ended meanwhile.
  using MakeCalls = std::function<Status(pid_t thread, const char* what)>;

  // The process is a child of this one, as what it has from there is not given to it.
  GivenRights(const SavedProcess& saved, CallList& list, MakeCalls make_calls)
      : saved_(saved), list_(list), make_calls_(std::move(make_calls)) {}

  Status give_limits(pid_t process);
  // To one thread; behind the limits, which it may not raise any more then.
  Status give_privileges(const ThreadFacts& thread);

 private:
  Status give_limit_of_cores(pid_t process);
  Status cannot_raise(pid_t process, std::size_t limit) const;
  Status add_credentials();
  Status add_bounds();
  void add_capabilities(const Capabilities& wanted);
  bool has_our_groups() const;

  const SavedProcess& saved_;
  CallList& list_;
  MakeCalls make_calls_;
};

// Whether a restore by this process could give them: tried in a child, by the same calls.
Status check_rights(const SavedProcess& saved);

}  // namespace pawl::wsp
