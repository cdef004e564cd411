#include "known_calls.h"

#include <array>
#include <optional>

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Type.h"

namespace pawl::compiler {
namespace {

constexpr int kNone = -1;
constexpr std::uint64_t kJumpBufferBytes = 200;  // sigjmp_buf of glibc on x86-64

// It writes `bytes` at the argument `pointer`, or as many as the argument `length` says.
struct KnownStore {
  llvm::StringLiteral name;
  int pointer;
  int length;
  std::uint64_t bytes = 0;
  bool copy = false;
  bool atomic = false;
};

constexpr std::array kKnownStores = {
    KnownStore{"memcpy", 0, 2, 0, true},
    KnownStore{"memmove", 0, 2, 0, true},
    KnownStore{"memset", 0, 2, 0, true},
    KnownStore{"mempcpy", 0, 2, 0, true},
    KnownStore{"__mempcpy", 0, 2, 0, true},
    KnownStore{"bcopy", 1, 2, 0, true},
    KnownStore{"bzero", 0, 1, 0, true},
    KnownStore{"explicit_bzero", 0, 1, 0, true},
    KnownStore{"__memcpy_chk", 0, 2, 0, true},
    KnownStore{"__memmove_chk", 0, 2, 0, true},
    KnownStore{"__memset_chk", 0, 2, 0, true},
    KnownStore{"__mempcpy_chk", 0, 2, 0, true},
    KnownStore{"__explicit_bzero_chk", 0, 1, 0, true},
    KnownStore{"setjmp", 0, kNone, kJumpBufferBytes},
    KnownStore{"_setjmp", 0, kNone, kJumpBufferBytes},
    KnownStore{"__sigsetjmp", 0, kNone, kJumpBufferBytes},
    KnownStore{"sigsetjmp", 0, kNone, kJumpBufferBytes},
    // libatomic's, for objects of any size: size, object, ...
    KnownStore{"__atomic_load", 2, 0},
    KnownStore{"__atomic_store", 1, 0, 0, false, true},
    KnownStore{"__atomic_exchange", 1, 0, 0, false, true},
    KnownStore{"__atomic_exchange", 3, 0},
    KnownStore{"__atomic_compare_exchange", 1, 0, 0, false, true},
    KnownStore{"__atomic_compare_exchange", 2, 0},
};

llvm::StringRef library_name(const llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr || !callee->isDeclarationForLinker() || callee->isIntrinsic()) return "";
  llvm::StringRef name = callee->getName();
  name.consume_front("\01");
  return name;
}

// libatomic's functions for one size: __atomic_fetch_add_16, __sync_val_compare_and_swap_16, ...
std::optional<std::uint64_t> sized_atomic_bytes(llvm::StringRef name) {
  if (!name.starts_with("__atomic_") && !name.starts_with("__sync_")) return std::nullopt;
  if (name.contains("_load_") || name.contains("is_lock_free")) return std::nullopt;
  const llvm::StringRef size = name.rsplit('_').second;
  std::uint64_t bytes = 0;
  if (size.getAsInteger(10, bytes) || bytes == 0 || bytes > 16) return std::nullopt;
  return bytes;
}

bool fits(const llvm::CallBase& call, const KnownStore& known) {
  const auto has = [&](int argument, auto is_type) {
    return argument < static_cast<int>(call.arg_size()) &&
           is_type(call.getArgOperand(static_cast<unsigned>(argument))->getType());
  };
  return has(known.pointer, [](llvm::Type* type) { return type->isPointerTy(); }) &&
         (known.length == kNone ||
          has(known.length, [](llvm::Type* type) { return type->isIntegerTy(); }));
}

}  // namespace

bool is_known_call(const llvm::CallBase& call) {
  const llvm::StringRef name = library_name(call);
  if (name.empty()) return false;
  if (sized_atomic_bytes(name)) return true;
  for (const KnownStore& known : kKnownStores) {
    if (known.name == name && fits(call, known)) return true;
  }
  return false;
}

bool is_known_copy(const llvm::CallBase& call) {
  const llvm::StringRef name = library_name(call);
  for (const KnownStore& known : kKnownStores) {
    if (known.copy && known.name == name && fits(call, known)) return true;
  }
  return false;
}

void find_sites_of_known_call(llvm::CallBase& call, std::vector<StoreSite>& sites) {
  const llvm::StringRef name = library_name(call);
  for (const KnownStore& known : kKnownStores) {
    if (known.name != name || !fits(call, known)) continue;
    StoreSite site{&call, call.getArgOperand(static_cast<unsigned>(known.pointer)), known.bytes};
    if (known.length != kNone) {
      site.length = call.getArgOperand(static_cast<unsigned>(known.length));
    }
    site.both_sides = known.atomic;
    sites.push_back(site);
  }
  if (const std::optional<std::uint64_t> bytes = sized_atomic_bytes(name)) {
    for (llvm::Value* argument : call.args()) {
      // The object first; then, of a compare-and-exchange, what was expected.
      if (!argument->getType()->isPointerTy()) continue;
      sites.push_back({&call, argument, *bytes, nullptr, argument == call.getArgOperand(0)});
    }
  }
}

}  // namespace pawl::compiler
