// Whose turn it is at a file, in this process.  An opening learns the size of a file before
// anybody finds it among the open mappings, and a closing still writes to it when nobody does any
// more: who cuts the file meanwhile, because it finds none, cuts what they rely on.
//
// Any number of openings and closings take their turn at once, for the journal decides between
// those; a resize has its turn alone.  Other files are not kept waiting.  To a waiting resize an
// opening or closing gives way, else it might wait for ever; but not for long, for locks of the
// caller's may be held, and not in a thread that has a turn already: an opening may close another
// file on its way.  Not from a signal handler.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "medium/medium.h"

namespace pawl {

class FileTurn {
 public:
  enum class To { open_or_close, resize };

  // Waits.  Not with a lock that a resize may need (a mapping's, NoFork), or one that an opening or
  // a closing may need.
  FileTurn(To what, std::uint64_t device, std::uint64_t inode);
  FileTurn(To what, const Medium& medium)
      : FileTurn(what, medium.device(), medium.identity().inode) {}
  FileTurn(const FileTurn&) = delete;
  FileTurn& operator=(const FileTurn&) = delete;
  ~FileTurn();

 private:
  void ask();
  bool take(bool may_give_way);

  const To what_;
  const std::uint64_t device_;
  const std::uint64_t inode_;
  const pthread_t thread_;
  bool is_taken_ = false;
  FileTurn* next_ = nullptr;
};

}  // namespace pawl
