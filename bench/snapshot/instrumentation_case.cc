// What the compiler's marks cost where there is nothing to track.
#include <dlfcn.h>
#include <fmt/core.h>

#include <chrono>
#include <iterator>
#include <stdexcept>

#include "common/conduct.h"
#include "common/failure.h"
#include "common/percentile.h"
#include "snapshot/cases.h"
#include "snapshot/programs.h"

namespace pawl::bench {
namespace {

using Clock = std::chrono::steady_clock;

RunProgram* open_programs(const std::string& module) {
  const std::string path = module_path(module);
  if (path.empty()) throw Unavailable("snapshot-" + module + ".so was not built");
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  void* const function = ::dlsym(library, "run_program");
  if (function == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<RunProgram*>(function);
}

double run_us(RunProgram* run, std::uint32_t program, std::uint64_t& sum) {
  const auto begin = Clock::now();
  sum = run(program);
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace

void measure_instrumentation(const SnapshotPlan& plan, SnapshotResults& results) {
  RunProgram* plain = nullptr;
  RunProgram* marked = nullptr;
  try {
    plain = open_programs("programs-plain");
    marked = open_programs("programs-marked");
  } catch (const Unavailable& reason) {
    results.skipped[kPartInstrumentation] = reason.what();
    return;
  }
  for (std::uint32_t program = 0; program < std::size(kPrograms); ++program) {
    std::vector<double> times_us[2];
    // The first round makes the input.
    for (std::uint32_t round = 0; round <= plan.instrumentation_rounds; ++round) {
      stop_if_asked();
      progress(fmt::format("instrumentation: {}, round {}", kPrograms[program], round));
      std::uint64_t sums[2] = {};
      for (const std::uint32_t turn : {0u, 1u}) {
        const std::uint32_t which = (turn + round) % 2;
        const double time_us = run_us(which == 0 ? plain : marked, program, sums[which]);
        if (round > 0) times_us[which].push_back(time_us);
      }
      if (sums[0] != sums[1])
        throw std::runtime_error(std::string(kPrograms[program]) +
                                 ": marks change what it computes");
    }
    results.instrumentation.push_back({kPrograms[program], times_us[0].size(),
                                       percentile(times_us[0], 0.5), percentile(times_us[1], 0.5)});
  }
  progress("");
}

}  // namespace pawl::bench
