#include "wsp/process/terminal_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "medium/descriptor.h"

namespace pawl::wsp {

namespace {

Status open_as(int stream, const std::string& name, int access) {
  const Descriptor opened(::open(name.c_str(), access | O_NOCTTY | O_CLOEXEC));
  if (opened.valid() && ::dup2(opened.get(), stream) == stream) return {};
  return FailedCall{errno,
                    "cannot keep the program, which is another user's, from reading the terminal; "
                    "restore it with other standard streams (</dev/null >FILE 2>&1)"};
}

}  // namespace

bool is_of_our_user(const ProcessFacts& facts) {
  return ::getuid() == ::geteuid() &&
         std::all_of(std::begin(facts.user), std::end(facts.user),
                     [](std::uint32_t user) { return user == ::geteuid(); });
}

Status give_up_reading_of_terminal() {
  if (::isatty(STDIN_FILENO) != 0) PAWL_TRY(open_as(STDIN_FILENO, "/dev/null", O_RDONLY));
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_read = (::fcntl(stream, F_GETFL) & O_ACCMODE) != O_WRONLY;
    if (is_read && ::isatty(stream) != 0)
      PAWL_TRY(open_as(stream, link_to_descriptor(stream), O_WRONLY));
  }
  return {};
}

}  // namespace pawl::wsp
