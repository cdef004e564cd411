// All that the rules need to look at one function.
#pragma once

#include "llvm/IR/Dominators.h"
#include "memory.h"
#include "module_facts.h"
#include "report.h"
#include "walk.h"

namespace pawl::compiler::fase_verifier {

struct FunctionScene {
  llvm::Function& function;
  const ModuleFacts& facts;
  Aliasing& aliasing;
  const llvm::DominatorTree& dominators;
  const BackEdges& back_edges;
  // Ways of a function whose loops have several entries may lead to another turn unseen.
  bool is_irreducible = false;
  Budget& budget;
  Reports& reports;

  WayState start() const { return {.has_looped = is_irreducible}; }
  bool is_resume_form() const { return facts.resumed_by(function) != nullptr; }

  // Of a resume form: live-ins and results, which its arguments lead to.
  bool is_run_times(const Access& access) const {
    return access.pointer != nullptr && is_resume_form() &&
           llvm::isa<llvm::Argument>(object_of(access.pointer));
  }

  template <typename Visitor>
  void backward(const llvm::Instruction& from, Visitor& visitor,
                const llvm::Value* object = nullptr) const {
    WayState way = start();
    way.object = object;
    Walk<Visitor>(budget, back_edges, visitor).backward(from, way);
  }
  template <typename Visitor>
  void forward(const llvm::Instruction& from, Visitor& visitor) const {
    Walk<Visitor>(budget, back_edges, visitor).forward(from, start());
  }
};

// The rules, each by itself (docs/fase-verifier.md).  They report what they find.
void check_overwrites(const FunctionScene& scene);  // a and b
void check_live_ins(const FunctionScene& scene);    // c
void check_notes(const FunctionScene& scene);       // d
void check_guards(const FunctionScene& scene);      // e

}  // namespace pawl::compiler::fase_verifier
