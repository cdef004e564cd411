#include "library_copies.h"

#include <array>
#include <optional>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace pawl::compiler::fase {
namespace {

enum class Kind {
  kCopy,    // (to, from, bytes)
  kMove,    // the same, and they may overlap
  kSet,     // (to, byte, bytes)
  kZero,    // (to, bytes)
  kString,  // (to, from)
  kPadded,  // (to, from, bytes): a string, and zeros up to there
};

struct Copy {
  llvm::StringLiteral name;
  Kind kind;
  unsigned arguments;
  bool returns_end = false;       // of what was written; a string's is where its zero is
  bool is_never_removed = false;  // also where nobody reads it
};

constexpr std::array kCopies = {
    Copy{"memcpy", Kind::kCopy, 3},
    Copy{"memmove", Kind::kMove, 3},
    Copy{"memset", Kind::kSet, 3},
    Copy{"mempcpy", Kind::kCopy, 3, /*returns_end=*/true},
    Copy{"bzero", Kind::kZero, 2},
    Copy{"explicit_bzero", Kind::kZero, 2, /*returns_end=*/false, /*is_never_removed=*/true},
    Copy{"strcpy", Kind::kString, 2},
    Copy{"stpcpy", Kind::kString, 2, /*returns_end=*/true},
    Copy{"strncpy", Kind::kPadded, 3},
};

struct Called {
  const Copy* copy = nullptr;
  bool is_fortified = false;  // its last argument is the room that there is
};

std::optional<Called> called(const llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr || callee->isIntrinsic() || !callee->isDeclarationForLinker()) return {};
  llvm::StringRef name = callee->getName();
  name.consume_front("\01");
  const bool is_fortified = name.starts_with("__") && name.consume_back("_chk");
  name.consume_front("__");
  for (const Copy& copy : kCopies) {
    const bool is_so = copy.name == name && call.arg_size() == copy.arguments + is_fortified &&
                       call.getArgOperand(0)->getType()->isPointerTy();
    if (is_so) return Called{&copy, is_fortified};
  }
  return std::nullopt;
}

class Replacement {
 public:
  Replacement(llvm::CallBase& call, const Called& called)
      : call_(call),
        copy_(*called.copy),
        is_fortified_(called.is_fortified),
        builder_(&call),
        to_(call.getArgOperand(0)) {}

  void make() {
    const bool has_source = copy_.kind != Kind::kSet && copy_.kind != Kind::kZero;
    llvm::Value* const from = has_source ? call_.getArgOperand(1) : nullptr;
    llvm::Value* end = nullptr;  // as a distance
    if (copy_.kind == Kind::kString) {
      end = length_of("strlen", {from});
      bytes_ = builder_.CreateAdd(end, builder_.getInt64(1));
    } else {
      end = bytes_ = call_.getArgOperand(copy_.arguments - 1);
    }
    if (is_fortified_) check_room();
    switch (copy_.kind) {
      case Kind::kCopy:
      case Kind::kString:
        builder_.CreateMemCpy(to_, {}, from, {}, bytes_);
        break;
      case Kind::kMove:
        builder_.CreateMemMove(to_, {}, from, {}, bytes_);
        break;
      case Kind::kSet:
        set(to_, builder_.CreateTrunc(call_.getArgOperand(1), builder_.getInt8Ty()), bytes_);
        break;
      case Kind::kZero:
        set(to_, builder_.getInt8(0), bytes_);
        break;
      case Kind::kPadded: {
        llvm::Value* const length = length_of("strnlen", {from, bytes_});
        builder_.CreateMemCpy(to_, {}, from, {}, length);
        set(builder_.CreatePtrAdd(to_, length), builder_.getInt8(0),
            builder_.CreateSub(bytes_, length));
        break;
      }
    }
    if (!call_.getType()->isVoidTy()) {
      call_.replaceAllUsesWith(copy_.returns_end ? builder_.CreatePtrAdd(to_, end) : to_);
    }
    call_.eraseFromParent();
  }

 private:
  void set(llvm::Value* to, llvm::Value* byte, llvm::Value* bytes) {
    builder_.CreateMemSet(to, byte, bytes, {}, /*isVolatile=*/copy_.is_never_removed);
  }

  llvm::Value* length_of(llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments) {
    llvm::SmallVector<llvm::Type*, 2> types;
    for (llvm::Value* argument : arguments) types.push_back(argument->getType());
    llvm::FunctionCallee function = call_.getModule()->getOrInsertFunction(
        name, llvm::FunctionType::get(builder_.getInt64Ty(), types, /*isVarArg=*/false));
    llvm::CallInst* length = builder_.CreateCall(function, arguments);
    // Whatever the program's own declaration says.
    length->setOnlyReadsMemory();
    length->setOnlyAccessesArgMemory();
    length->setDoesNotThrow();
    length->addFnAttr(llvm::Attribute::WillReturn);
    return length;
  }

  void check_room() {
    llvm::Value* const too_small =
        builder_.CreateICmpUGT(bytes_, call_.getArgOperand(copy_.arguments));
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(too_small);
    if (known != nullptr && known->isZero()) return;
    llvm::Instruction* const end =
        llvm::SplitBlockAndInsertIfThen(too_small, &call_, /*Unreachable=*/true);
    llvm::IRBuilder<> failed(end);
    failed.SetCurrentDebugLocation(call_.getDebugLoc());
    llvm::CallInst* fail =
        failed.CreateCall(call_.getModule()->getOrInsertFunction("__chk_fail", failed.getVoidTy()));
    fail->setDoesNotReturn();
    fail->setDoesNotThrow();
    builder_.SetInsertPoint(&call_);
  }

  llvm::CallBase& call_;
  const Copy& copy_;
  const bool is_fortified_;
  llvm::IRBuilder<> builder_;
  llvm::Value* const to_;
  llvm::Value* bytes_ = nullptr;
};

}  // namespace

bool is_library_copy(const llvm::CallBase& call) { return called(call).has_value(); }

void replace_library_copies(llvm::Function& function) {
  std::vector<llvm::CallInst*> found;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    if (call != nullptr && is_library_copy(*call)) found.push_back(call);
  }
  for (llvm::CallInst* call : found) Replacement(*call, *called(*call)).make();
}

}  // namespace pawl::compiler::fase
