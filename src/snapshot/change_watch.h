// Sees each change of a file that is made on this machine: without a clock, so that two changes in
// one tick of the file system's time are two.
#pragma once

#include "medium/descriptor.h"

namespace pawl::snapshot {

class ChangeWatch {
 public:
  // Of the file that is open as `descriptor`, from now on.
  explicit ChangeWatch(int descriptor);

  // False where changes may come from elsewhere (a network's file system), or the kernel has no
  // watch to give.
  bool sees_all() const { return sees_all_; }
  // Whether the file was changed since: its bytes by a call, its size or its attributes.  Every
  // call that has returned is seen.
  bool has_seen_one() const;

 private:
  Descriptor events_;
  bool sees_all_ = false;
};

}  // namespace pawl::snapshot
