#include "broken_cutting.h"

#include <string>

#include "llvm/Support/CommandLine.h"

namespace pawl::compiler::fase {
namespace {

const llvm::cl::opt<std::string> kFault("pawl-break-cutting", llvm::cl::Hidden,
                                        llvm::cl::desc("for tests of Pawl: a fault to have"));

}  // namespace

bool is_broken(llvm::StringRef fault) { return kFault == fault; }

void break_cuts(std::vector<Cut>& cuts) {
  llvm::StringRef fault = kFault;
  std::size_t number = 0;
  if (!fault.consume_front("drop-") || fault.getAsInteger(10, number)) return;
  if (number < cuts.size()) cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(number));
}

}  // namespace pawl::compiler::fase
