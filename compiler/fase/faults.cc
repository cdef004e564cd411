#include "faults.h"

#include <string>

#include "llvm/Support/CommandLine.h"

namespace pawl::compiler::fase {
namespace {

const llvm::cl::opt<std::string> kFault("pawl-fase-fault", llvm::cl::Hidden,
                                        llvm::cl::desc("for tests of Pawl: a fault to have"));
const llvm::cl::opt<bool> kIsUnverified("pawl-fase-unverified", llvm::cl::Hidden,
                                        llvm::cl::desc("for tests of Pawl: no verifier"));

}  // namespace

bool has_fault(llvm::StringRef fault) { return kFault == fault; }

void drop_cut(std::vector<Cut>& cuts) {
  llvm::StringRef fault = kFault;
  std::size_t number = 0;
  if (!fault.consume_front("drop-") || fault.getAsInteger(10, number)) return;
  if (number < cuts.size()) cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(number));
}

bool is_unverified() { return kIsUnverified; }

}  // namespace pawl::compiler::fase
