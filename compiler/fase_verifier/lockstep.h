// The function and its resume form, executed side by side from where a region begins.
#pragma once

#include <optional>
#include <string>

#include "module_facts.h"
#include "slots.h"

namespace pawl::compiler::fase_verifier {

// Instructions that are looked at for one region.  What is behind them is not compared.
constexpr unsigned kLockstepStepsMax = 20'000;

// Both are followed over the same ways, with values as terms over what was logged.  Says what is
// certainly different: an effect whose operands are different slots, constants or results.  Where
// optimisation has given the two another form, the way is left: so this finds mistakes, and proves
// nothing.
std::optional<std::string> find_difference(const Frame& frame, const llvm::Function& resume,
                                           std::uint64_t region, const Slots& logged,
                                           const ModuleFacts& facts);

}  // namespace pawl::compiler::fase_verifier
