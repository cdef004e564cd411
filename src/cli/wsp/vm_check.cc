// pawl wsp vm check: can such a machine be saved here, and would what is saved last?
#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/exit_codes.h"
#include "cli/text.h"
#include "cli/wsp/vm_arguments.h"
#include "wsp/vm/memory_place.h"
#include "wsp/vm/supervisor.h"

namespace pawl::cli {

namespace {

// Nobody is to have made a directory of that name before.
std::uint64_t random_number() {
  std::uint64_t drawn = 0;
  PAWL_ASSERT(::getrandom(&drawn, sizeof drawn, 0) == ssize_t{sizeof drawn});
  return drawn;
}

// A finding, and whether it keeps a machine from coming through a power failure.
struct VmFinding {
  const char* about;
  bool stops;
  std::string text;
};

VmFinding find_place(const wsp::vm::MemoryPlace& place, const std::string& path) {
  switch (place.kind) {
    case wsp::vm::MemoryPlace::Kind::kTmpfs:
      return {"memory", true,
              path +
                  " is this machine's own memory (tmpfs): a stand-in, which survives the death "
                  "of processes, and not of the machine"};
    case wsp::vm::MemoryPlace::Kind::kDaxFlushed:
      return {"memory", false,
              path + " is persistent memory, and the platform flushes the processor's caches"};
    case wsp::vm::MemoryPlace::Kind::kDaxUnflushed:
      return {"memory", true,
              path +
                  " is persistent memory, but what is in the processor's caches when the power "
                  "fails is lost: the platform does not say that it flushes them"};
    case wsp::vm::MemoryPlace::Kind::kPageCache:
      return {"memory", true,
              path +
                  " is a file system on a disk: what the guest has in memory is lost with the "
                  "host, and slow before that"};
  }
  return {"memory", true, path};
}

VmFinding find_privilege() {
  sched_param before{};
  const int policy = ::sched_getscheduler(0);
  ::sched_getparam(0, &before);
  sched_param priority{};
  priority.sched_priority = 1;
  if (::sched_setscheduler(0, SCHED_RR, &priority) != 0) {
    return {"privileges", false,
            "no real-time scheduling (CAP_SYS_NICE): a save waits for what else runs here; "
            "rehearse under load"};
  }
  ::sched_setscheduler(0, policy, &before);
  return {"privileges", false, "the save goes before everything else that runs here"};
}

VmFinding find_disk(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) == 0 && S_ISBLK(facts.st_mode)) {
    return {"disk", false,
            path +
                " is a block device: of changes after a save only those to its first 64 KiB "
                "are noticed"};
  }
  return {"disk", false, path + " belongs to the save"};
}

// `scratch` is a directory for the trial, in `path`.
std::vector<VmFinding> find_vm(const std::string& path, wsp::vm::MachineDirectory& scratch,
                               const wsp::vm::MachineDescription& machine) {
  std::vector<VmFinding> found{find_privilege()};
  const Result<wsp::vm::MemoryPlace> place = wsp::vm::look_at_memory_place(scratch);
  if (!place.ok()) {
    found.push_back({"memory", true, place.status().text()});
    return found;
  }
  found.push_back(find_place(place.value(), path));
  if (!place.value().sees_access) {
    found.push_back({"memory", false,
                     path + " keeps no times of access: that somebody mapped the guest's memory "
                            "after a save is not noticed"});
  }
  const Result<wsp::vm::Trial> trial = wsp::vm::try_machine(scratch, machine);
  if (!trial.ok()) {
    found.push_back({"machine", true, trial.status().text()});
    return found;
  }
  found.push_back({"machine", false,
                   fmt::format("QEMU {} saves it, before it runs, in {:.2f} ms",
                               trial.value().qemu_version, trial.value().save_us / 1000)});
  for (const std::string& disk : trial.value().disk_files) found.push_back(find_disk(disk));
  return found;
}

}  // namespace

int vm_check(const VmArguments& arguments, const AfterDashes& after_dashes) {
  const Result<wsp::vm::MachineDescription> machine = machine_of(arguments, after_dashes);
  if (!machine.ok()) {
    complain("wsp vm check", machine.status().text());
    return exit_code_of_vm_failure(machine.status());
  }
  // Beside the machine's own files, of which none is touched.
  const Descriptor parent(::open(arguments.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) {
    complain("wsp vm check", FailedCall{errno, "cannot open " + arguments.directory}.text());
    return kExitFailure;
  }
  const std::string name = fmt::format("pawl-check-{:016x}", random_number());
  Result<wsp::OwnDirectory> made =
      wsp::OwnDirectory::make_in(parent.get(), arguments.directory, name);
  if (!made.ok()) {
    complain("wsp vm check", made.status().text());
    return kExitFailure;
  }
  wsp::vm::MachineDirectory scratch(std::move(made.value()));
  const std::vector<VmFinding> found = find_vm(arguments.directory, scratch, machine.value());
  scratch.files().remove_files();
  ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);
  bool stops = false;
  Json findings = Json::array();
  for (const VmFinding& finding : found) {
    stops = stops || finding.stops;
    findings.push_back(
        {{"about", finding.about}, {"stops", finding.stops}, {"text", finding.text}});
    if (!arguments.as_json)
      fmt::print("{:<10} {}{}\n", finding.about, finding.stops ? "NO: " : "", finding.text);
  }
  if (arguments.as_json) print_json({{"able", !stops}, {"findings", findings}});
  return stops ? kExitUnsafe : kExitOk;
}

}  // namespace pawl::cli
