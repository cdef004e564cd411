#include "moves.h"

#include <array>
#include <vector>

#include "accesses.h"
#include "diagnostics.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace pawl::compiler::fase {
namespace {

constexpr llvm::StringLiteral kMove = "pawl_fase_move";
// Of one piece; frames hold some more.
constexpr std::uint64_t kPieceBytes = 256;
constexpr std::uint64_t kWordBytes = 8;

// The function that moves in pieces: void pawl_fase_move(to, from, bytes).
class Mover {
 public:
  explicit Mover(llvm::Module& module) : module_(module), builder_(module.getContext()) {}

  llvm::Function* make() {
    llvm::Type* const pointer = builder_.getPtrTy();
    function_ = llvm::Function::Create(
        llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, builder_.getInt64Ty()},
                                /*isVarArg=*/false),
        llvm::GlobalValue::InternalLinkage, kMove, module_);
    function_->setDoesNotThrow();
    function_->addFnAttr(llvm::Attribute::NoInline);
    llvm::BasicBlock* entry = add_block();
    llvm::BasicBlock* forwards = add_block();
    llvm::BasicBlock* backwards = add_block();
    builder_.SetInsertPoint(entry);
    llvm::Value* is_down = builder_.CreateICmpULT(function_->getArg(0), function_->getArg(1));
    builder_.CreateCondBr(is_down, forwards, backwards);
    move(forwards, /*is_forwards=*/true);
    move(backwards, /*is_forwards=*/false);
    return function_;
  }

 private:
  llvm::BasicBlock* add_block() {
    return llvm::BasicBlock::Create(module_.getContext(), "", function_);
  }

  llvm::Type* piece_type(std::uint64_t bytes) {
    if (bytes <= kWordBytes) return builder_.getIntNTy(static_cast<unsigned>(8 * bytes));
    return llvm::FixedVectorType::get(builder_.getInt64Ty(),
                                      static_cast<unsigned>(bytes / kWordBytes));
  }

  void move_piece(llvm::Value* offset, std::uint64_t bytes) {
    llvm::Value* from = builder_.CreatePtrAdd(function_->getArg(1), offset);
    llvm::Value* to = builder_.CreatePtrAdd(function_->getArg(0), offset);
    llvm::Value* piece = builder_.CreateAlignedLoad(piece_type(bytes), from, llvm::Align(1));
    builder_.CreateAlignedStore(piece, to, llvm::Align(1));
  }

  // First whole pieces, then one for each bit of what is left.
  void move(llvm::BasicBlock* block, bool is_forwards) {
    llvm::BasicBlock* loop = add_block();
    llvm::BasicBlock* body = add_block();
    llvm::BasicBlock* rest = add_block();
    llvm::Value* const bytes = function_->getArg(2);
    builder_.SetInsertPoint(block);
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    llvm::PHINode* left = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    left->addIncoming(bytes, block);
    builder_.CreateCondBr(builder_.CreateICmpUGE(left, builder_.getInt64(kPieceBytes)), body, rest);
    builder_.SetInsertPoint(body);
    llvm::Value* less = builder_.CreateSub(left, builder_.getInt64(kPieceBytes));
    move_piece(is_forwards ? builder_.CreateSub(bytes, left) : less, kPieceBytes);
    left->addIncoming(less, body);
    builder_.CreateBr(loop);
    llvm::Value* now_left = left;
    for (std::uint64_t size = kPieceBytes / 2; size != 0; size /= 2) {
      llvm::BasicBlock* piece = add_block();
      llvm::BasicBlock* next = add_block();
      builder_.SetInsertPoint(rest);
      llvm::Value* has_piece =
          builder_.CreateIsNotNull(builder_.CreateAnd(now_left, builder_.getInt64(size)));
      builder_.CreateCondBr(has_piece, piece, next);
      builder_.SetInsertPoint(piece);
      llvm::Value* left_then = builder_.CreateSub(now_left, builder_.getInt64(size));
      move_piece(is_forwards ? builder_.CreateSub(bytes, now_left) : left_then, size);
      builder_.CreateBr(next);
      builder_.SetInsertPoint(next);
      llvm::PHINode* joined = builder_.CreatePHI(builder_.getInt64Ty(), 2);
      joined->addIncoming(now_left, rest);
      joined->addIncoming(left_then, piece);
      now_left = joined;
      rest = next;
    }
    builder_.SetInsertPoint(rest);
    builder_.CreateRetVoid();
  }

  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
  llvm::Function* function_ = nullptr;
};

// Plain copying where nothing overlaps, which only the execution tells.
void split(llvm::MemMoveInst& move, llvm::Function& mover) {
  llvm::IRBuilder<> builder(&move);
  llvm::Value* const to = move.getRawDest();
  llvm::Value* const from = move.getRawSource();
  llvm::Value* const bytes = builder.CreateZExtOrTrunc(move.getLength(), builder.getInt64Ty());
  llvm::Value* distance = builder.CreateSub(builder.CreatePtrToInt(to, builder.getInt64Ty()),
                                            builder.CreatePtrToInt(from, builder.getInt64Ty()));
  llvm::Value* overlaps =
      builder.CreateOr(builder.CreateICmpULT(distance, bytes),
                       builder.CreateICmpULT(builder.CreateNeg(distance), bytes));
  llvm::Instruction* in_pieces = nullptr;
  llvm::Instruction* at_once = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(overlaps, &move, &in_pieces, &at_once);
  builder.SetInsertPoint(in_pieces);
  builder.SetCurrentDebugLocation(move.getDebugLoc());
  builder.CreateCall(&mover, {to, from, bytes})->setDoesNotThrow();
  builder.SetInsertPoint(at_once);
  builder.SetCurrentDebugLocation(move.getDebugLoc());
  builder.CreateMemCpy(to, move.getDestAlign(), from, move.getSourceAlign(), move.getLength());
  move.eraseFromParent();
}

}  // namespace

bool split_moves(llvm::Module& module, const Sections& sections,
                 llvm::FunctionAnalysisManager& analyses) {
  std::vector<llvm::MemMoveInst*> found;
  for (llvm::Function& function : module) {
    if (!is_defined(function)) continue;
    auto& aliases = analyses.getResult<llvm::AAManager>(function);
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* move = llvm::dyn_cast<llvm::MemMoveInst>(&instruction);
      if (move == nullptr || sections.before(instruction) == Inside::kNever) continue;
      if (provenance(move->getRawDest()) == Provenance::kVolatile) continue;
      const auto to = llvm::MemoryLocation::getForDest(move);
      if (!aliases.isNoAlias(to, llvm::MemoryLocation::getForSource(move))) found.push_back(move);
    }
  }
  if (found.empty()) return false;
  llvm::Function* mover = Mover(module).make();
  for (llvm::MemMoveInst* move : found) {
    llvm::Function& function = *move->getFunction();
    split(*move, *mover);
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
  }
  return true;
}

}  // namespace pawl::compiler::fase
