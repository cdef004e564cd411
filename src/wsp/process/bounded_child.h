// What may be held up by others (a file server that does not answer, whoever may stop a process of
// the program's user), or what changes a process for good, is done in a child, which is waited for
// no longer than that.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl::wsp {

// Within a save, for all that is done so: a server that is well answers sooner.
constexpr std::chrono::milliseconds kServerTimeMax{20};

// How that went, in a child that has only these descriptors open.  Behind `longest` it is killed:
// ETIMEDOUT; where a server holds it, it ends when that answers, and holds nothing of ours.  As
// long as there is such a one no other is made: ETIMEDOUT, too.  ECANCELED: others killed it.
Status try_in_child(std::chrono::milliseconds longest, const std::function<Status()>& work,
                    std::vector<int> kept = {});

// What a restore would do to its new process, or with the rights of another.  ECANCELED, too: it
// took too long.
Status try_restoring(const std::function<Status()>& work);
// The same of so many steps, of which each may take as long, and all 20 s and 5 ms for each.
Status try_restoring_each(std::size_t count, const std::function<Status(std::size_t)>& step);

// Zeros that such a child writes for us.
class SharedBytes {
 public:
  explicit SharedBytes(std::size_t count);
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  ~SharedBytes();

  std::byte* data() const { return data_; }  // none: there is no memory
  std::size_t size() const { return count_; }

  // What it is at, cut to the room that there is; and what was noted last.
  void note(const std::string& text) const;
  std::string noted() const;

 private:
  std::byte* data_ = nullptr;
  std::size_t count_;
};

}  // namespace pawl::wsp
