#include "inline_assembly.h"

#include <array>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "skip.h"

namespace pawl::compiler {
namespace {

// Instructions that are written with a "memory" clobber for the order that they keep, and write
// none.
constexpr std::array<llvm::StringLiteral, 21> kInstructionsThatWriteNothing = {
    "pause",  "nop",        "mfence",   "lfence", "sfence",     "cpuid",      "rdtsc",
    "rdtscp", "rdpmc",      "int3",     "ud2",    "serialize",  "endbr64",    "clflush",
    "clwb",   "clflushopt", "cldemote", "hlt",    "prefetcht0", "prefetcht1", "prefetchnta"};

bool is_repeat(llvm::StringRef word) { return word == "rep" || word == "repz"; }

// True of a compiler barrier, and of the instructions above.
bool writes_nothing(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 4> statements;
  llvm::SplitString(text, statements, ";\n");
  return llvm::all_of(statements, [](llvm::StringRef statement) {
    llvm::SmallVector<llvm::StringRef, 4> words;
    llvm::SplitString(statement, words, " \t");
    // "rep; nop" are two statements, "rep nop" is one.
    const auto word = llvm::find_if_not(words, is_repeat);
    return word == words.end() || word->starts_with("#") ||
           llvm::is_contained(kInstructionsThatWriteNothing, word->lower());
  });
}

// True where the text names the operand, as $2 or ${2:b}: what it writes then has the operand's
// type.
bool names_operand(llvm::StringRef text, unsigned operand) {
  for (std::size_t at = text.find('$'); at != llvm::StringRef::npos; at = text.find('$', at)) {
    llvm::StringRef rest = text.drop_front(++at);
    if (rest.consume_front("$")) {  // a plain one
      ++at;
      continue;
    }
    rest.consume_front("{");
    unsigned named = 0;
    if (!rest.consumeInteger(10, named) && named == operand) return true;
  }
  return false;
}

// An operand that the text does not name says what is written through a pointer in a register: all
// of a struct or an array.  The type of an array of variable length is that of one element, and one
// without a length has none.
bool has_size(llvm::Type* type, llvm::StringRef text, unsigned operand,
              const llvm::DataLayout& layout) {
  return type != nullptr && type->isSized() && !layout.getTypeStoreSize(type).isZero() &&
         (type->isAggregateType() || names_operand(text, operand));
}

}  // namespace

void warn_untracked(const llvm::Instruction& instruction, const llvm::Twine& what) {
  instruction.getContext().diagnose(
      llvm::DiagnosticInfoInlineAsm(instruction, what, llvm::DS_Warning));
}

void find_sites_of_assembly(llvm::CallBase& call, std::vector<StoreSite>& sites) {
  const auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
  const llvm::DataLayout& layout = call.getModule()->getDataLayout();
  bool clobbers_memory = false;
  bool is_marked = true;
  unsigned argument = 0;
  unsigned operand = 0;
  for (const llvm::InlineAsm::ConstraintInfo& constraint : assembly->ParseConstraints()) {
    if (constraint.Type == llvm::InlineAsm::isClobber) {
      clobbers_memory |= llvm::is_contained(constraint.Codes, "{memory}");
    }
    if (constraint.Type == llvm::InlineAsm::isClobber) continue;
    const unsigned number = operand++;
    if (!constraint.hasArg()) continue;
    const unsigned index = argument++;
    if (constraint.Type != llvm::InlineAsm::isOutput) continue;
    llvm::Value* pointer = call.getArgOperand(index);
    if (is_never_in_mapping(pointer)) continue;
    llvm::Type* type = call.getParamElementType(index);
    if (!has_size(type, assembly->getAsmString(), number, layout) ||
        llvm::isa<llvm::CallBrInst>(call)) {
      is_marked = false;
      continue;
    }
    // It may be a locked instruction.
    sites.push_back({&call, pointer, layout.getTypeStoreSize(type).getFixedValue(), nullptr, true});
  }
  if (!is_marked) {
    warn_untracked(call, "Pawl does not track what this inline assembly writes to its operands");
  } else if (clobbers_memory && !writes_nothing(assembly->getAsmString())) {
    warn_untracked(
        call,
        "Pawl does not track what this inline assembly writes beyond its memory operands; "
        "call pawl_stored() after it if that can lie in a mapping");
  }
}

}  // namespace pawl::compiler
