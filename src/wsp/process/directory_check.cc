#include "wsp/process/directory_check.h"

#include <fmt/core.h>

#include <cerrno>
#include <string>

#include "wsp/process/bounded_child.h"
#include "wsp/process/file_proof.h"

namespace pawl::wsp {

namespace {

bool is_of_itself(const SavedProcess& saved) {
  return (saved.directory + "/").starts_with(fmt::format("/proc/{}/", saved.process.process));
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
  const Status entered = try_in_child(longest, [&saved] { return go_to_directory(saved); });
  if (entered.error_number() == ETIMEDOUT)
    return entered.with_text("cannot go to " + saved.directory +
                             ": its file system does not answer");
  return entered.ok() ? entered : with_remedy(entered, saved.directory);
}

}  // namespace pawl::wsp
