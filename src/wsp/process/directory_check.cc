#include "wsp/process/directory_check.h"

#include <fmt/core.h>
#include <sched.h>

#include <cerrno>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "medium/quiet_thread.h"
#include "wsp/process/file_proof.h"

namespace pawl::wsp {

namespace {

bool is_of_itself(const SavedProcess& saved) {
  return (saved.directory + "/").starts_with(fmt::format("/proc/{}/", saved.process.process));
}

// Of the calling thread alone.
Status enter(const SavedProcess& who) {
  if (::unshare(CLONE_FS) != 0)
    return FailedCall{errno, "cannot try to go to " + who.directory + " in a thread of its own"};
  return go_to_directory(who);
}

Status with_remedy(const Status& failure, const std::string& name) {
  const int error_number = failure.error_number();
  if (error_number == ENOENT && name.ends_with(" (deleted)"))
    return failure.with_text(failure.text() +
                             "; it was removed: start the program in a directory that stays, or "
                             "make one of exactly that name before it is restored");
  if (error_number == EACCES)
    return failure.with_text(failure.text() +
                             "; start the program in a directory that its user may enter, or let "
                             "him enter this one and those above it (chmod o+x)");
  return failure;
}

}  // namespace

Status check_directory(const SavedProcess& saved, std::chrono::milliseconds longest) {
  if (is_of_itself(saved)) return {};
  // Nothing of the caller's, who may have gone on.
  SavedProcess who;
  who.system = saved.system;
  who.process = saved.process;
  who.groups = saved.groups;
  who.directory = saved.directory;
  std::packaged_task<Status()> work([who = std::move(who)] { return enter(who); });
  std::future<Status> found = work.get_future();
  Result<std::thread> thread = start_quiet_thread("pawl-directory", std::move(work));
  if (!thread.ok()) return thread.status();
  if (found.wait_for(longest) != std::future_status::ready) {
    thread.value().detach();
    return Status::failure(ETIMEDOUT,
                           "cannot go to " + saved.directory + ": its file system does not answer");
  }
  thread.value().join();
  const Status entered = found.get();
  return entered.ok() ? entered : with_remedy(entered, saved.directory);
}

}  // namespace pawl::wsp
