#include "cli/watch/watch.h"

#include <cerrno>
#include <cstdlib>

#include "cli/exit_codes.h"
#include "cli/program.h"
#include "cli/text.h"
#include "cli/watch/answer.h"
#include "cli/watch/calls.h"
#include "cli/watch/judgement.h"
#include "cli/watch/process_start.h"
#include "mapping/options.h"

namespace pawl::cli::watch {

namespace {

int refuse(int code, const Status& status) {
  complain("doctor", status.text());
  return code;
}

}  // namespace

int watch(const Request& request) {
  Result<std::string> path = find_program(request.command.front());
  if (!path.ok()) {
    return refuse(path.status().error_number() == ENOENT ? kExitNotFound : kExitCannotRun,
                  path.status());
  }
  // Which functions the face stands before, it says itself.
  Result<std::string> library = find_preload_library();
  if (!library.ok()) return refuse(kExitFailure, library.status());
  Result<ElfFile> face = read_elf_file(library.value());
  if (!face.ok()) return refuse(kExitFailure, face.status());

  // As 'pawl run' will take them from the environment.
  const Result<Options> options = Options::from_environment();
  if (!options.ok()) return refuse(kExitUsage, options.status());

  const Globs globs(request.globs);
  Libraries libraries(face.value().names());
  Calls calls(globs, libraries, library.value(), options.value());
  const Program program{path.value(), request.command, trial_variables(std::getenv("LD_PRELOAD")),
                        request.json};
  Result<Ending> ending = trace(program, calls);
  if (!ending.ok()) {
    const int error_number = ending.status().error_number();
    const bool is_no_program = error_number == ENOEXEC || error_number == EACCES;
    return refuse(is_no_program ? kExitCannotRun : kExitFailure, ending.status());
  }
  const ProgramFacts facts = calls.finish(ending.value());
  const Judgement judgement = judge(facts);
  if (request.json) {
    print_json(answer_json(facts, judgement, request.command));
  } else {
    print_answer(facts, judgement, request.command);
  }
  if (judgement.is_fine) return kExitOk;
  return judgement.can_protect ? kExitProtectedBut : kExitUnsafe;
}

}  // namespace pawl::cli::watch
