#include "marks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace pawl::compiler {
namespace {

// Mappings lie in [kRegionFirst, kRegionEnd) terabytes: src/track/tracker.h has these numbers, too.
constexpr unsigned kRegionShift = 40;
constexpr std::uint32_t kRegionFirst = 0x08;
constexpr std::uint32_t kRegionEnd = 0x55;

constexpr llvm::StringLiteral kMark = "pawl_stored";

llvm::FunctionCallee mark_function(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::AttributeList attributes;
  attributes = attributes.addFnAttribute(context, llvm::Attribute::NoUnwind);
  attributes = attributes.addFnAttribute(context, llvm::Attribute::Cold);
  // Not "readnone", though it is: no store may be moved behind its mark.
  attributes = attributes.addParamAttribute(context, 0, llvm::Attribute::NoCapture);
  return module.getOrInsertFunction(kMark, attributes, llvm::Type::getVoidTy(context),
                                    llvm::PointerType::getUnqual(context),
                                    llvm::Type::getInt64Ty(context));
}

llvm::Type* like(llvm::Value* pointers, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::VectorType>(pointers->getType());
  return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
}

llvm::Value* compare(llvm::IRBuilder<>& builder, llvm::CmpInst::Predicate predicate,
                     llvm::Value* pointer, std::uint32_t terabyte) {
  llvm::Type* const type = like(pointer, builder.getInt64Ty());
  llvm::Value* holds =
      builder.CreateICmp(predicate, builder.CreatePtrToInt(pointer, type),
                         llvm::ConstantInt::get(type, std::uint64_t{terabyte} << kRegionShift));
  return holds->getType()->isVectorTy() ? builder.CreateOrReduce(holds) : holds;
}

// The object that the pointer leads into, or the pointer: no object is partly in a mapping.  Stores
// into one object are then checked alike, and the check of one serves those that follow it (see
// plugin.cc).  It may be the object's end that the pointer goes back from, and so the region's: the
// check lets that pass.
llvm::Value* to_check(llvm::Value* pointer) {
  if (!pointer->getType()->isPointerTy()) return pointer;
  llvm::Value* object = pointer;
  while (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(object)) {
    if (!step->isInBounds() || !step->getPointerOperandType()->isPointerTy()) break;
    object = const_cast<llvm::Value*>(step->getPointerOperand());
  }
  // An address that was made of a number has no object.
  return llvm::isa<llvm::Constant>(object) ? pointer : object;
}

// One compare where nothing is to be marked, for what a program has lies behind the region.  (Were
// the end not in, it would be a round number, and code generation would shift the address instead:
// two more instructions.)  Addresses in front of the region are those of programs that are linked
// to fixed ones; they are sorted out behind the branch.
llvm::Instruction* branch_if_in_region(llvm::IRBuilder<>& builder, llvm::Value* pointer,
                                       llvm::Instruction* before) {
  llvm::MDNode* const unlikely =
      llvm::MDBuilder(builder.getContext()).createUnlikelyBranchWeights();
  llvm::Value* checked = compare(builder, llvm::CmpInst::ICMP_ULE, to_check(pointer), kRegionEnd);
  llvm::Instruction* cold =
      llvm::SplitBlockAndInsertIfThen(checked, before, /*Unreachable=*/false, unlikely);
  builder.SetInsertPoint(cold);
  llvm::Value* is_behind_start = compare(builder, llvm::CmpInst::ICMP_UGE, pointer, kRegionFirst);
  return llvm::SplitBlockAndInsertIfThen(is_behind_start, cold, /*Unreachable=*/false);
}

void emit_mark(const Mark& mark) {
  llvm::IRBuilder<> builder(mark.before);
  llvm::Value* pointer = mark.pointer;
  if (mark.may_be_poison) pointer = builder.CreateFreeze(pointer);
  llvm::Type* const plain = like(pointer, builder.getPtrTy());
  if (pointer->getType() != plain) pointer = builder.CreateAddrSpaceCast(pointer, plain);
  builder.SetInsertPoint(branch_if_in_region(builder, pointer, mark.before));
  const llvm::FunctionCallee stored = mark_function(*mark.before->getModule());
  llvm::Value* length = builder.CreateZExtOrTrunc(mark.length, builder.getInt64Ty());
  if (mark.offset != 0) {
    pointer = builder.CreateGEP(builder.getInt8Ty(), pointer, builder.getInt64(mark.offset));
  }
  const auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(pointer->getType());
  if (lanes == nullptr) {
    builder.CreateCall(stored, {pointer, length})->setDoesNotThrow();
    return;
  }
  for (unsigned lane = 0; lane < lanes->getNumElements(); ++lane) {
    builder.CreateCall(stored, {builder.CreateExtractElement(pointer, lane), length})
        ->setDoesNotThrow();
  }
}

// All ways of a switch to one successor are one.
llvm::Instruction* place_on_way(llvm::Instruction& leaving, unsigned number) {
  llvm::BasicBlock* successor = leaving.getSuccessor(number);
  if (successor->getUniquePredecessor() == nullptr) {
    successor = llvm::SplitCriticalEdge(
        &leaving, number, llvm::CriticalEdgeSplittingOptions().setMergeIdenticalEdges());
    if (successor == nullptr) return &leaving;  // it is the only one
  }
  return &*successor->getFirstInsertionPt();
}

llvm::Value* length_of(const StoreSite& site) {
  return site.length != nullptr ? site.length
                                : constant_length(site.instruction->getContext(), site.bytes);
}

Mark mark_of(const StoreSite& site, llvm::Instruction* before) {
  return {before, site.pointer, length_of(site), !site.whole || site.length != nullptr};
}

}  // namespace

bool is_mark_block(const llvm::BasicBlock& block) {
  const auto* call = llvm::dyn_cast_or_null<llvm::CallInst>(block.getTerminator()->getPrevNode());
  return block.getSinglePredecessor() != nullptr && call != nullptr &&
         call->getCalledFunction() != nullptr && call->getCalledFunction()->getName() == kMark;
}

llvm::Value* constant_length(llvm::LLVMContext& context, std::uint64_t bytes) {
  return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), bytes);
}

Place place_of(llvm::Value* pointer, const llvm::DataLayout& layout) {
  llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  llvm::Value* object =
      pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/false);
  if (object->getType() != pointer->getType() || llvm::isa<llvm::Constant>(object) ||
      offset.getSignificantBits() > 32) {
    return {pointer, 0};
  }
  return {object, offset.getSExtValue()};
}

Mark mark_before(const StoreSite& site) { return mark_of(site, site.instruction); }

Mark mark_after(const StoreSite& site) {
  if (!site.instruction->isTerminator()) return mark_of(site, site.instruction->getNextNode());
  Mark mark = mark_of(site, nullptr);
  mark.leaving = site.instruction;  // an invoke: where it goes if it does not throw
  return mark;
}

void emit_marks(std::vector<Mark> marks) {
  // From the last to the first: each splits its block, and what is behind it is moved.  Blocks of
  // ten thousands of stores would be moved as often.
  llvm::Instruction* emitted_before = nullptr;
  llvm::Instruction* emitted = nullptr;
  for (Mark& mark : llvm::reverse(marks)) {
    if (mark.before == nullptr) mark.before = place_on_way(*mark.leaving, mark.successor);
    // Of several at one place, the first stays the first.
    const bool is_another_here = mark.before == emitted_before;
    emitted_before = mark.before;
    if (is_another_here) mark.before = emitted;
    llvm::BasicBlock* block = mark.before->getParent();
    llvm::Instruction* previous = mark.before->getPrevNode();
    emit_mark(mark);
    emitted = previous == nullptr ? &block->front() : previous->getNextNode();
  }
}

}  // namespace pawl::compiler
