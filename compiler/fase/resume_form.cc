#include "resume_form.h"

#include "faults.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

class ResumeForm {
 public:
  ResumeForm(const FunctionPlan& plan, const KeptGlobals& globals)
      : plan_(plan),
        globals_(globals),
        module_(*plan.function->getParent()),
        context_(module_.getContext()),
        layout_(module_.getDataLayout()) {}

  llvm::Function* make() {
    llvm::Function* copy = llvm::CloneFunction(plan_.function, clones_);
    find_begins(*copy);
    make_arguments_instructions(*copy);
    find_values();
    make_function(*copy);
    redirect_globals();
    demote_values();
    make_entry();
    remove_arguments_list();
    replace_returns();
    end_with_sections();
    copy->eraseFromParent();
    llvm::removeUnreachableBlocks(*resume_);
    llvm::DominatorTree dominators(*resume_);
    llvm::erase_if(slots_to_promote_,
                   [](llvm::AllocaInst* slot) { return !llvm::isAllocaPromotable(slot); });
    llvm::PromoteMemToReg(slots_to_promote_, dominators);
    return resume_;
  }

 private:
  llvm::Value* clone_of(llvm::Value* value) {
    if (llvm::isa<llvm::Constant>(value)) return value;
    return clones_.lookup(value);
  }

  void find_begins(llvm::Function& copy) {
    for (llvm::Instruction& instruction : llvm::instructions(copy)) instruction.dropDbgRecords();
    for (const Region& region : plan_.regions) {
      begins_.push_back(
          llvm::cast<llvm::Instruction>(clone_of(region.begins_behind))->getNextNode());
    }
    // Blocks begin where regions do; from the last to the first, as several may be in one.
    for (llvm::Instruction* begin : llvm::reverse(begins_)) {
      llvm::SplitBlock(begin->getParent(), begin);
    }
  }

  // Arguments of the copy become instructions of it, which can be given other values.
  void make_arguments_instructions(llvm::Function& copy) {
    llvm::IRBuilder<> builder(&copy.getEntryBlock(), copy.getEntryBlock().getFirstInsertionPt());
    auto original = plan_.function->arg_begin();
    for (llvm::Argument& argument : copy.args()) {
      llvm::Argument& of_function = *original++;
      if (argument.use_empty()) continue;
      auto* value = llvm::cast<llvm::Instruction>(
          builder.Insert(new llvm::FreezeInst(llvm::PoisonValue::get(argument.getType()))));
      argument.replaceAllUsesWith(value);
      clones_[&of_function] = value;
    }
  }

  // The values that have to be there at the begin of some region.
  void find_values() {
    llvm::SmallPtrSet<const llvm::Value*, 32> known;
    const auto add = [&](llvm::Value* value) {
      if (known.insert(value).second) values_.push_back(value);
    };
    for (const Region& region : plan_.regions) {
      for (llvm::Value* value : region.live_ins.stored) add(value);
      for (llvm::Instruction* value : region.live_ins.computed) add(value);
      // What the call returned.
      const bool has_result =
          region.kind != RegionKind::kAtCut && !region.at->getType()->isVoidTy();
      if (has_result && !region.at->use_empty()) add(region.at);
    }
  }

  void make_function(llvm::Function& copy) {
    auto* pointer = llvm::PointerType::getUnqual(context_);
    auto* type = llvm::FunctionType::get(
        llvm::Type::getVoidTy(context_),
        {llvm::Type::getInt32Ty(context_), pointer, pointer, pointer}, /*isVarArg=*/false);
    resume_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                     plan_.function->getName() + ".resume", module_);
    resume_->setComdat(plan_.function->getComdat());
    for (const llvm::Attribute attribute : copy.getAttributes().getFnAttrs()) {
      resume_->addFnAttr(attribute);
    }
    for (const llvm::Attribute::AttrKind kind :
         {llvm::Attribute::AlwaysInline, llvm::Attribute::AllocSize, llvm::Attribute::AllocKind,
          llvm::Attribute::NoReturn, llvm::Attribute::WillReturn}) {
      resume_->removeFnAttr(kind);
    }
    resume_->removeFnAttr("alloc-family");
    resume_->addFnAttr(llvm::Attribute::NoInline);
    resume_->addFnAttr(llvm::Attribute::Cold);
    if (copy.hasPersonalityFn()) resume_->setPersonalityFn(copy.getPersonalityFn());
    resume_->setSubprogram(copy.getSubprogram());
    resume_->splice(resume_->begin(), &copy);
    entry_ = llvm::BasicBlock::Create(context_, "resume", resume_, &resume_->front());
    // Variables of the stack are there on all ways.
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(resume_))) {
      if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
        if (llvm::isa<llvm::Constant>(variable->getArraySize())) {
          variable->moveBefore(*entry_, entry_->end());
        }
      }
    }
    switch_block_ =
        llvm::BasicBlock::Create(context_, "regions", resume_, &*std::next(resume_->begin()));
    llvm::BranchInst::Create(switch_block_, entry_);
  }

  // What global variables held is in the frame, and here in variables of the function.
  void redirect_globals() {
    if (has_fault("globals")) return;
    std::vector<llvm::LoadInst*> reads;
    for (llvm::Instruction& instruction : llvm::instructions(resume_)) {
      if (globals_.read_of(instruction)) reads.push_back(llvm::cast<llvm::LoadInst>(&instruction));
    }
    for (llvm::LoadInst* read : reads) {
      const GlobalValueRead place = *globals_.read_of(*read);
      llvm::AllocaInst*& slot = global_slots_[place];
      if (slot == nullptr) {
        slot = new llvm::AllocaInst(place.second, 0, "", entry_->getTerminator()->getIterator());
        slots_to_promote_.push_back(slot);
      }
      read->setOperand(0, slot);
      read->setAlignment(slot->getAlign());
    }
  }

  void demote_values() {
    for (llvm::Value* value : values_) {
      auto* instruction = llvm::cast<llvm::Instruction>(clone_of(value));
      llvm::AllocaInst* slot = llvm::DemoteRegToStack(*instruction, /*VolatileLoads=*/false,
                                                      entry_->getTerminator()->getIterator());
      if (slot == nullptr) continue;  // nobody uses it
      slots_[value] = slot;
      slots_to_promote_.push_back(slot);
    }
  }

  void make_entry() {
    llvm::BasicBlock* no_region = llvm::BasicBlock::Create(context_, "none", resume_);
    new llvm::UnreachableInst(context_, no_region);
    llvm::IRBuilder<> builder(switch_block_);
    auto* choice = builder.CreateSwitch(resume_->getArg(0), no_region,
                                        static_cast<unsigned>(plan_.regions.size()));
    for (unsigned number = 0; number < plan_.regions.size(); ++number) {
      llvm::BasicBlock* block = llvm::BasicBlock::Create(context_, "region", resume_);
      choice->addCase(builder.getInt32(number), block);
      load_live_ins(*block, plan_.regions[number]);
      llvm::BranchInst::Create(begins_[number]->getParent(), block);
    }
  }

  void load_live_ins(llvm::BasicBlock& block, const Region& region) {
    llvm::IRBuilder<> builder(&block);
    llvm::DenseMap<const llvm::Value*, llvm::Value*> values;
    const auto set = [&](llvm::Value* value, llvm::Value* loaded) {
      values[value] = loaded;
      llvm::AllocaInst* slot = slots_.lookup(value);
      if (slot != nullptr) builder.CreateStore(loaded, slot);
    };
    std::uint64_t offset = 0;
    for (llvm::Value* value : region.live_ins.stored) {
      llvm::Value* place =
          builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), resume_->getArg(1), offset);
      set(value, builder.CreateAlignedLoad(value->getType(), place, llvm::Align(kSlotBytes)));
      offset += slot_bytes(value->getType(), layout_);
    }
    for (llvm::AllocaInst* variable : region.live_ins.locals) {
      const std::uint64_t bytes = content_bytes(*variable, layout_);
      llvm::Value* place =
          builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), resume_->getArg(1), offset);
      builder.CreateMemCpy(clone_of(variable), variable->getAlign(), place, llvm::Align(kSlotBytes),
                           bytes);
      offset += llvm::alignTo(bytes, kSlotBytes);
    }
    for (const GlobalValueRead& read : region.live_ins.globals) {
      llvm::Value* place =
          builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), resume_->getArg(1), offset);
      llvm::Value* held = builder.CreateAlignedLoad(read.second, place, llvm::Align(kSlotBytes));
      if (llvm::AllocaInst* slot = global_slots_.lookup(read)) builder.CreateStore(held, slot);
      offset += slot_bytes(read.second, layout_);
    }
    for (llvm::Instruction* value : region.live_ins.computed) {
      llvm::Instruction* again = value->clone();
      again->dropDbgRecords();
      again->setDebugLoc({});
      again->dropPoisonGeneratingFlags();
      for (llvm::Use& operand : again->operands()) {
        const auto found = values.find(operand.get());
        operand.set(found != values.end() ? found->second : clone_of(operand.get()));
      }
      builder.Insert(again);
      set(value, again);
    }
    if (slots_.lookup(region.at) == nullptr) return;
    if (region.kind == RegionKind::kAfterUnlock) {
      // It has been released.
      set(region.at, llvm::Constant::getNullValue(region.at->getType()));
    } else if (region.kind == RegionKind::kAfterCall) {
      set(region.at, builder.CreateAlignedLoad(region.at->getType(), resume_->getArg(2),
                                               llvm::Align(kSlotBytes)));
    }
  }

  // A section in which they are asked for is refused; what stands before or after sections is not
  // gone through here.
  void remove_arguments_list() {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(resume_))) {
      if (llvm::isa<llvm::VAStartInst>(instruction)) instruction.eraseFromParent();
    }
  }

  void replace_returns() {
    std::vector<llvm::ReturnInst*> returns;
    for (llvm::Instruction& instruction : llvm::instructions(resume_)) {
      if (auto* end = llvm::dyn_cast<llvm::ReturnInst>(&instruction)) returns.push_back(end);
    }
    for (llvm::ReturnInst* end : returns) {
      llvm::IRBuilder<> builder(end);
      if (llvm::Value* value = end->getReturnValue()) {
        builder.CreateAlignedStore(value, resume_->getArg(3), llvm::Align(1));
      }
      builder.CreateRetVoid();
      end->eraseFromParent();
    }
  }

  // Behind the end of all sections nothing is resumed: a thread of the recovery does not come back
  // from there, or has not held the lock, and then its section cannot be finished.
  void end_with_sections() {
    std::vector<llvm::Instruction*> ends;
    for (llvm::Instruction& instruction : llvm::instructions(resume_)) {
      if (ends_all_sections(instruction)) ends.push_back(&instruction);
    }
    for (llvm::Instruction* end : ends) {
      llvm::SplitBlock(end->getParent(), end->getNextNode());
      llvm::ReplaceInstWithInst(end->getParent()->getTerminator(),
                                llvm::ReturnInst::Create(context_));
    }
  }

  const FunctionPlan& plan_;
  const KeptGlobals& globals_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const llvm::DataLayout& layout_;
  llvm::ValueToValueMapTy clones_;  // of the function's values
  llvm::Function* resume_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  llvm::BasicBlock* switch_block_ = nullptr;
  std::vector<llvm::Instruction*> begins_;  // by the number of the region
  std::vector<llvm::Value*> values_;        // of the function
  llvm::DenseMap<const llvm::Value*, llvm::AllocaInst*> slots_;
  llvm::DenseMap<GlobalValueRead, llvm::AllocaInst*> global_slots_;
  std::vector<llvm::AllocaInst*> slots_to_promote_;
};

}  // namespace

llvm::Function* make_resume_form(const FunctionPlan& plan, const KeptGlobals& globals) {
  return ResumeForm(plan, globals).make();
}

}  // namespace pawl::compiler::fase
