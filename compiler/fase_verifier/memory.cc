#include "memory.h"

#include "abi_calls.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

namespace pawl::compiler::fase_verifier {
namespace {

constexpr unsigned kPhisMax = 8;       // behind one another
constexpr unsigned kOriginsMax = 256;  // values that one may be, or be computed from
// Steps from an address to what it leads to: no bound, for each member of a structure is one.
constexpr unsigned kObjectsDepth = 0;

const llvm::Value* choice_of(const llvm::Value* pointer, unsigned depth);

// The address that all values are, where some may be what became of it in recovery.
template <typename Values>
const llvm::Value* common(const Values& values, unsigned depth) {
  const llvm::Value* address = nullptr;
  bool has_target = false;
  for (const llvm::Value* value : values) {
    has_target |= is_volatile_target(value);
    const llvm::Value* one = choice_of(value, depth);
    if (address != nullptr && one != address) return nullptr;
    address = one;
  }
  return has_target ? address : nullptr;
}

const llvm::Value* choice_of(const llvm::Value* pointer, unsigned depth) {
  if (depth == 0) return pointer;
  if (is_volatile_target(pointer)) return llvm::cast<llvm::CallInst>(pointer)->getArgOperand(0);
  const llvm::Value* address = nullptr;
  if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(pointer)) {
    address = common(phi->incoming_values(), depth - 1);
  } else if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(pointer)) {
    const llvm::Value* const values[] = {select->getTrueValue(), select->getFalseValue()};
    address = common(values, depth - 1);
  }
  return address == nullptr ? pointer : address;
}

// One choice may stand for several addresses, each at some distance from it.
Access access(const llvm::Instruction& by, const llvm::Value* pointer, std::uint64_t bytes) {
  const llvm::DataLayout& layout = by.getDataLayout();
  Access made{.by = &by, .pointer = pointer, .bytes = bytes};
  std::int64_t offset = 0;
  bool is_constant = true;
  for (const llvm::Value* at = pointer;;) {
    if (const llvm::Value* own = own_address(at); own != at) {
      made.pointer = own;
      made.offset = offset;
      made.choice = at;
      made.is_unbounded = !is_constant;
      return made;
    }
    const auto* gep = llvm::dyn_cast<llvm::GEPOperator>(at);
    if (gep == nullptr || gep->getType()->isVectorTy()) return made;
    llvm::APInt distance(layout.getIndexTypeSizeInBits(gep->getType()), 0);
    is_constant &= gep->accumulateConstantOffset(layout, distance);
    offset += distance.getSExtValue();
    at = gep->getPointerOperand();
  }
}

Access access(const llvm::Instruction& by, const llvm::Value* pointer, const llvm::Value* length) {
  Access made = access(by, pointer, std::uint64_t{0});
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(length)) {
    made.bytes = constant->getZExtValue();
  } else {
    made.length = length;
  }
  return made;
}

// As the copy of an empty structure.
bool is_of_no_bytes(const Access& one) {
  return one.pointer != nullptr && one.bytes == 0 && one.length == nullptr && !one.is_unbounded;
}

std::uint64_t store_bytes(const llvm::Instruction& by, llvm::Type* type) {
  return by.getModule()->getDataLayout().getTypeStoreSize(type).getKnownMinValue();
}

// What reads and writes the same bytes.
std::optional<Access> of_atomic(const llvm::Instruction& instruction) {
  if (const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    return access(*exchange, exchange->getPointerOperand(),
                  store_bytes(*exchange, exchange->getCompareOperand()->getType()));
  }
  if (const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
    return access(*update, update->getPointerOperand(), store_bytes(*update, update->getType()));
  return std::nullopt;
}

template <typename Has>
bool all_objects(const llvm::Value* pointer, const Has& has) {
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, nullptr, kObjectsDepth);
  return llvm::all_of(objects, has);
}

// Calls whose arguments lead to what they read, or write: where nobody knows how much, it may be
// all that is around.
Accesses of_call(const llvm::CallBase& call, bool is_write) {
  Accesses found;
  if (abi_call(call) != AbiCall::kNone) return found;
  const Foreign kind = foreign(call);
  if (kind != Foreign::kAccesses && (is_write || kind != Foreign::kReadsArguments)) return found;
  if (is_write ? call.onlyReadsMemory() : call.onlyWritesMemory()) return found;
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    const llvm::Value* argument = call.getArgOperand(i);
    if (!argument->getType()->isPtrOrPtrVectorTy()) continue;
    if (is_write ? call.onlyReadsMemory(i) : call.onlyWritesMemory(i)) continue;
    if (argument->getType()->isVectorTy()) {
      found.push_back({.by = &call});
    } else if (const llvm::Value* length = length_read(call)) {
      found.push_back(access(call, argument, length));
    } else {
      Access made = access(call, argument, std::uint64_t{0});
      made.is_unbounded = true;
      found.push_back(made);
    }
  }
  return found;
}

}  // namespace

bool is_volatile_target(const llvm::Value* value) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(value);
  return call != nullptr && abi_call(*call) == AbiCall::kVolatileTarget;
}

const llvm::Value* own_address(const llvm::Value* pointer) { return choice_of(pointer, kPhisMax); }

Place place_of(const llvm::Value* pointer, const llvm::DataLayout& layout) {
  Place place{own_address(pointer), 0};
  while (const auto* gep = llvm::dyn_cast<llvm::GEPOperator>(place.base)) {
    if (gep->getType()->isVectorTy()) break;
    llvm::APInt offset(layout.getIndexTypeSizeInBits(gep->getType()), 0);
    if (!gep->accumulateConstantOffset(layout, offset)) break;
    place.offset += offset.getSExtValue();
    place.base = own_address(gep->getPointerOperand());
  }
  return place;
}

namespace {

bool is_whole_address(const llvm::Value& value) {
  return value.getType()->isPointerTy() || value.getType()->isIntegerTy(64);
}

// The address without additions, masks, and changes from pointer to number and back.
const llvm::Value* base_of(const llvm::Value* pointer) {
  for (const llvm::Value* at = own_address(pointer);;) {
    const llvm::Value* from = nullptr;
    if (const auto* gep = llvm::dyn_cast<llvm::GEPOperator>(at)) {
      from = gep->getPointerOperand();
    } else if (llvm::isa<llvm::IntToPtrInst, llvm::PtrToIntOperator>(at)) {
      from = llvm::cast<llvm::User>(at)->getOperand(0);
      if (!is_whole_address(*from) || !is_whole_address(*at)) return at;
    } else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(at)) {
      from = llvm::getArgumentAliasingToReturnedPointer(call, /*MustPreserveNullness=*/false);
    }
    if (from == nullptr) return at;
    at = own_address(from);
  }
}

// What all choices lead back to, as that of a pointer that walks through an array; or null.  It is
// computed before the first of them, and when it is computed anew, then so are they.
const llvm::Value* origin_of(const llvm::Value* choice) {
  const llvm::Value* origin = nullptr;
  llvm::SmallVector<const llvm::Value*, 8> values{choice};
  for (unsigned i = 0; i < values.size(); ++i) {
    if (i == kOriginsMax) return nullptr;
    const auto* select = llvm::dyn_cast<llvm::SelectInst>(values[i]);
    if (select == nullptr && !llvm::isa<llvm::PHINode>(values[i])) {
      if (origin != nullptr && origin != values[i]) return nullptr;
      origin = values[i];
      continue;
    }
    const unsigned first = select == nullptr ? 0 : 1;  // behind the condition
    for (const llvm::Value* one :
         llvm::drop_begin(llvm::cast<llvm::Instruction>(values[i])->operand_values(), first)) {
      const llvm::Value* base = base_of(one);
      if (!llvm::is_contained(values, base)) values.push_back(base);
    }
  }
  return origin;
}

}  // namespace

const llvm::Value* object_of(const llvm::Value* pointer) {
  const llvm::Value* base = base_of(pointer);
  const llvm::Value* origin = origin_of(base);
  return origin == nullptr ? base : origin;
}

Accesses reads(const llvm::Instruction& instruction) {
  Accesses found;
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    found.push_back(access(*load, load->getPointerOperand(), store_bytes(*load, load->getType())));
  } else if (const auto* move = llvm::dyn_cast<llvm::AnyMemTransferInst>(&instruction)) {
    found.push_back(access(*move, move->getRawSource(), move->getLength()));
  } else if (const std::optional<Access> both = of_atomic(instruction)) {
    found.push_back(*both);
  } else if (abi_call(instruction) == AbiCall::kRoot) {
    found.push_back({.by = &instruction, .is_root = true});
  } else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
             call != nullptr && !llvm::isa<llvm::AnyMemSetInst>(call)) {
    found = of_call(*call, /*is_write=*/false);
  }
  llvm::erase_if(found, [](const Access& one) {
    return is_of_no_bytes(one) ||
           (one.pointer != nullptr && (is_on_stack(one.pointer) || is_constant(one.pointer)));
  });
  return found;
}

Accesses writes(const llvm::Instruction& instruction) {
  Accesses found;
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    found.push_back(access(*store, store->getPointerOperand(),
                           store_bytes(*store, store->getValueOperand()->getType())));
  } else if (const auto* set = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&instruction)) {
    found.push_back(access(*set, set->getRawDest(), set->getLength()));
  } else if (const std::optional<Access> both = of_atomic(instruction)) {
    found.push_back(*both);
  } else if (abi_call(instruction) == AbiCall::kSetRoot) {
    found.push_back({.by = &instruction, .is_root = true});
  } else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    found = of_call(*call, /*is_write=*/true);
  }
  llvm::erase_if(found, [](const Access& one) {
    return is_of_no_bytes(one) || (one.pointer != nullptr && is_on_stack(one.pointer));
  });
  return found;
}

namespace {
Accesses only_persistent(Accesses found) {
  llvm::erase_if(found, [](const Access& one) {
    return one.pointer != nullptr && is_never_persistent(one.pointer);
  });
  return found;
}
}  // namespace

Accesses persistent_reads(const llvm::Instruction& instruction) {
  return only_persistent(reads(instruction));
}
Accesses persistent_writes(const llvm::Instruction& instruction) {
  return only_persistent(writes(instruction));
}

bool goes_nowhere_in_recovery(const Access& write) {
  if (write.choice == nullptr) return false;
  llvm::SmallVector<const llvm::Value*, 4> choices{write.choice};
  for (unsigned i = 0; i < choices.size(); ++i) {
    if (is_volatile_target(choices[i])) continue;
    const bool is_choice = llvm::isa<llvm::PHINode, llvm::SelectInst>(choices[i]);
    if (!is_choice || i == kChoicesMax) return false;
    for (const llvm::Value* one : llvm::cast<llvm::User>(choices[i])->operands()) {
      if (one->getType()->isPointerTy() && !llvm::is_contained(choices, one)) {
        choices.push_back(one);
      }
    }
  }
  return true;
}

// An address that the program knows as a number.
std::optional<std::uint64_t> number_of(const llvm::Value* object) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantExpr>(object);
  if (constant == nullptr || constant->getOpcode() != llvm::Instruction::IntToPtr) return {};
  const auto* number = llvm::dyn_cast<llvm::ConstantInt>(constant->getOperand(0));
  if (number == nullptr) return std::nullopt;
  return number->getZExtValue();
}

bool is_on_stack(const llvm::Value* pointer) {
  return all_objects(pointer, [](const llvm::Value* object) {
    const auto* argument = llvm::dyn_cast<llvm::Argument>(object);
    return llvm::isa<llvm::AllocaInst, llvm::UndefValue>(object) ||
           (argument != nullptr && argument->hasByValAttr());
  });
}

bool is_constant(const llvm::Value* pointer) {
  return all_objects(pointer, [](const llvm::Value* object) {
    const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(object);
    return llvm::isa<llvm::Function>(object) || (variable != nullptr && variable->isConstant());
  });
}

bool is_of_thread(const llvm::Value* object) {
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(object);
  return intrinsic != nullptr &&
         intrinsic->getIntrinsicID() == llvm::Intrinsic::threadlocal_address;
}

bool is_variable(const llvm::Value* pointer) {
  return all_objects(pointer, [](const llvm::Value* object) {
    return llvm::isa<llvm::GlobalVariable>(object) || is_of_thread(object);
  });
}

bool is_never_persistent(const llvm::Value* pointer) {
  return all_objects(pointer, [](const llvm::Value* object) {
    if (is_of_thread(object)) return true;
    const auto* argument = llvm::dyn_cast<llvm::Argument>(object);
    return llvm::isa<llvm::AllocaInst, llvm::GlobalVariable, llvm::Function, llvm::UndefValue,
                     llvm::ConstantPointerNull>(object) ||
           (argument != nullptr && argument->hasByValAttr());
  });
}

bool is_always_persistent(const llvm::Value* pointer) {
  bool has_one = false;
  const bool are_all = all_objects(pointer, [&](const llvm::Value* object) {
    if (llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(object)) return true;
    if (const std::optional<std::uint64_t> number = number_of(object)) {
      has_one = true;
      return *number - kWindow < kWindowBytes;
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(object);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    if (callee == nullptr) return false;
    const llvm::StringRef name = callee->getName();
    has_one = true;
    return name == "pawl_fase_malloc" || name == "pawl_fase_calloc" || name == "pawl_fase_root";
  });
  return are_all && has_one;
}

const llvm::Instruction* allocation_of(const llvm::Value* pointer) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(object_of(pointer));
  const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
  if (callee == nullptr) return nullptr;
  const bool is_new =
      callee->getName() == "pawl_fase_malloc" || callee->getName() == "pawl_fase_calloc";
  return is_new ? call : nullptr;
}

bool depends_on(const Access& access, const llvm::Instruction& value) {
  if (access.length == &value) return true;
  return access.pointer != nullptr &&
         place_of(access.pointer, value.getDataLayout()).base == &value;
}

bool covers(const Access& outer, const Access& inner) {
  if (outer.is_root || inner.is_root) return outer.is_root && inner.is_root;
  if (outer.pointer == nullptr || inner.pointer == nullptr) return false;
  if (outer.is_unbounded || inner.is_unbounded) return false;
  const llvm::DataLayout& layout = inner.by->getDataLayout();
  Place out = place_of(outer.pointer, layout);
  Place in = place_of(inner.pointer, layout);
  out.offset += outer.offset;
  in.offset += inner.offset;
  if (out.base != in.base) return false;
  if (outer.length != nullptr || inner.length != nullptr) {
    return outer.length == inner.length && out.offset == in.offset;
  }
  return out.offset <= in.offset && in.offset + static_cast<std::int64_t>(inner.bytes) <=
                                        out.offset + static_cast<std::int64_t>(outer.bytes);
}

Aliasing::~Aliasing() {
  for (llvm::Instruction* address : addresses_) address->eraseFromParent();
}

const llvm::Value* Aliasing::address_of(const Access& access) {
  if (access.offset == 0) return access.pointer;
  const llvm::Value*& address = known_addresses_[{access.by, access.pointer}];
  if (address != nullptr) return address;
  llvm::LLVMContext& context = access.by->getContext();
  auto* made = llvm::GetElementPtrInst::Create(
      llvm::Type::getInt8Ty(context), const_cast<llvm::Value*>(access.pointer),
      {llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(context), access.offset)}, "",
      const_cast<llvm::Instruction*>(access.by)->getIterator());
  addresses_.push_back(made);
  address = made;
  return made;
}

llvm::MemoryLocation Aliasing::location_of(const Access& access, bool has_looped) {
  llvm::AAMDNodes tags = access.by->getAAMetadata();
  // Scopes hold for one turn of a loop.
  if (has_looped) tags.Scope = tags.NoAlias = nullptr;
  // Those of a move are not of one of its two sides.
  if (llvm::isa<llvm::CallBase>(access.by)) tags = llvm::AAMDNodes();
  const llvm::Value* address = address_of(access);
  if (access.is_unbounded) return llvm::MemoryLocation::getBeforeOrAfter(address, tags);
  if (access.length != nullptr) return llvm::MemoryLocation::getAfter(address, tags);
  return llvm::MemoryLocation(address, llvm::LocationSize::precise(access.bytes), tags);
}

bool Aliasing::may_overwrite(const Access& write, const Access& read, bool has_looped) {
  if (write.is_root || read.is_root) return write.is_root && read.is_root;
  if (write.pointer == nullptr || read.pointer == nullptr) return true;
  if (new_blocks_.are_apart(object_of(write.pointer), object_of(read.pointer))) return false;
  llvm::BatchAAResults& analysis = has_looped ? any_turn_ : same_turn_;
  return analysis.alias(location_of(write, has_looped), location_of(read, has_looped)) !=
         llvm::AliasResult::NoAlias;
}

bool Aliasing::may_overwrite_input_of(const Access& write, const llvm::CallBase& call) {
  if (write.is_root) return true;
  if (write.pointer == nullptr) return true;
  return llvm::isRefSet(any_turn_.getModRefInfo(&call, location_of(write, /*has_looped=*/true)));
}

}  // namespace pawl::compiler::fase_verifier
