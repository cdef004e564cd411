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

// One subtraction and one compare: (address >> 40) - 8 < 77.
llvm::Value* is_in_region(llvm::IRBuilder<>& builder, llvm::Value* pointer) {
  llvm::Type* const narrow = like(pointer, builder.getInt32Ty());
  llvm::Value* address = builder.CreatePtrToInt(pointer, like(pointer, builder.getInt64Ty()));
  llvm::Value* terabyte = builder.CreateTrunc(builder.CreateLShr(address, kRegionShift), narrow);
  llvm::Value* offset = builder.CreateSub(terabyte, llvm::ConstantInt::get(narrow, kRegionFirst));
  llvm::Value* in_region =
      builder.CreateICmpULT(offset, llvm::ConstantInt::get(narrow, kRegionEnd - kRegionFirst));
  return in_region->getType()->isVectorTy() ? builder.CreateOrReduce(in_region) : in_region;
}

// The start of the object that the pointer leads into, as far as that is known, or the pointer: no
// object is partly in a mapping.  Stores into one object are then checked alike, and the check of
// one serves those that follow it (see plugin.cc).  Not the end of an object, to go back from: that
// may be the region's.
llvm::Value* to_check(llvm::Value* pointer, const llvm::DataLayout& layout) {
  if (!pointer->getType()->isPointerTy()) return pointer;
  llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  llvm::Value* base =
      pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/false);
  const bool is_same_space = base->getType() == pointer->getType();
  return is_same_space && offset.isNonNegative() ? base : pointer;
}

void emit_mark(const Mark& mark) {
  llvm::IRBuilder<> builder(mark.before);
  llvm::Value* pointer = mark.pointer;
  if (mark.may_be_poison) pointer = builder.CreateFreeze(pointer);
  llvm::Type* const plain = like(pointer, builder.getPtrTy());
  if (pointer->getType() != plain) pointer = builder.CreateAddrSpaceCast(pointer, plain);
  llvm::Value* in_region =
      is_in_region(builder, to_check(pointer, mark.before->getModule()->getDataLayout()));
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(in_region)) {
    if (constant->isZero()) return;
  }
  llvm::Instruction* cold = llvm::SplitBlockAndInsertIfThen(
      in_region, mark.before, /*Unreachable=*/false,
      llvm::MDBuilder(builder.getContext()).createUnlikelyBranchWeights());
  builder.SetInsertPoint(cold);
  const llvm::FunctionCallee stored = mark_function(*mark.before->getModule());
  llvm::Value* length = builder.CreateZExtOrTrunc(mark.length, builder.getInt64Ty());
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

Mark mark_before(const StoreSite& site) { return mark_of(site, site.instruction); }

Mark mark_after(const StoreSite& site) {
  if (!site.instruction->isTerminator()) return mark_of(site, site.instruction->getNextNode());
  Mark mark = mark_of(site, nullptr);
  mark.after = llvm::cast<llvm::InvokeInst>(site.instruction);
  return mark;
}

void emit_marks(std::vector<Mark> marks) {
  // From the last to the first: each splits its block, and what is behind it is moved.  Blocks of
  // ten thousands of stores would be moved as often.
  llvm::Instruction* emitted_before = nullptr;
  llvm::Instruction* emitted = nullptr;
  for (Mark& mark : llvm::reverse(marks)) {
    if (mark.before == nullptr) {
      llvm::BasicBlock* edge =
          llvm::SplitEdge(mark.after->getParent(), mark.after->getNormalDest());
      mark.before = &*edge->getFirstInsertionPt();
    }
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
