#include "wsp/directory/whose.h"

#include <fmt/core.h>

#include <cerrno>
#include <initializer_list>

namespace pawl::wsp {

namespace {

Status refuse_names(const OwnDirectory& directory, std::initializer_list<const char*> names,
                    const char* whose, const char* verb) {
  for (const char* const name : names) {
    if (!directory.has(name)) continue;
    return Status::failure(
        EEXIST, fmt::format("{} is the directory of a {}, whose save may lie there; name another "
                            "one, use {}, or remove it when nothing of it is needed any more",
                            directory.path(), whose, verb));
  }
  return {};
}

}  // namespace

Status refuse_a_machines(const OwnDirectory& directory) {
  return refuse_names(directory, {kMachineMarkerFile, kMachineDescriptionFile}, "machine",
                      "pawl wsp vm");
}

Status refuse_a_programs(const OwnDirectory& directory) {
  return refuse_names(directory, {kProgramImageFile}, "program", "pawl wsp run and restore");
}

}  // namespace pawl::wsp
