// Rule c: what a frame's call logs is what the resume form loads, slot by slot, and what it goes on
// with is what the function went on with.
#include <map>

#include "abi_calls.h"
#include "function_scene.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "lockstep.h"
#include "report.h"
#include "slots.h"

namespace pawl::compiler::fase_verifier {
namespace {

std::uint64_t expected_kind(const llvm::CallBase& call) {
  switch (abi_call(call)) {
    case AbiCall::kCut:
      return kAtCut;
    case AbiCall::kCallFrame:
      return kAfterCall;
    default:
      return kAfterUnlock;
  }
}

// What the call logs, if it agrees with the table.
void check_frame(const FunctionScene& scene, const Frame& frame) {
  if (llvm::isa<llvm::ConstantPointerNull>(frame.function)) return;
  const Table* table = scene.facts.table(frame.function);
  const auto* number = llvm::dyn_cast<llvm::ConstantInt>(frame.region);
  const bool is_own =
      table != nullptr && (table->function == &scene.function || table->resume == &scene.function);
  if (!is_own || number == nullptr || number->getZExtValue() >= table->regions.size()) {
    scene.reports.error(*frame.call, 'c',
                        "the function's table does not have the region that is logged here");
    return;
  }
  const Table::Region& region = table->regions[number->getZExtValue()];
  if (region.kind != expected_kind(*frame.call)) {
    scene.reports.error(*frame.call, 'c', "the function's table has another kind for the region");
  }
  if (region.live_in_bytes > kLiveInBytesMax) {
    scene.reports.error(*frame.call, 'c', "the function's table has more bytes than can be logged");
  }
  const Slots slots = logged_slots(frame);
  std::uint64_t end = 0;
  for (const auto& [offset, slot] : slots) {
    if (offset != end) break;
    end = llvm::alignTo(offset + slot.bytes, kSlotBytes);
  }
  if (end < region.live_in_bytes) {
    scene.reports.error(*frame.call, 'c',
                        "of the " + llvm::Twine(region.live_in_bytes) +
                            " bytes that the table has only " + llvm::Twine(end) +
                            " are stored before they are logged");
  }
}

// All that the resume form loads for the region was stored so.
void check_loads(const FunctionScene& scene, const Frame& frame, const Table& table,
                 std::uint64_t region) {
  if (table.resume == nullptr || table.resume->isDeclaration()) {
    scene.reports.error(*frame.call, 'c', "no function resumes the region that is logged here");
    return;
  }
  Slots logged = logged_slots(frame);
  for (const auto& [offset, slot] : resumed_slots(*table.resume, region)) {
    const auto found = logged.find(offset);
    if (found != logged.end()) found->second = as_loaded(found->second, slot.type);
    if (found == logged.end() || found->second.bytes != slot.bytes ||
        found->second.type != slot.type ||
        offset + slot.bytes > table.regions[region].live_in_bytes) {
      scene.reports.error(*frame.call, 'c',
                          "the resume form loads " + llvm::Twine(slot.bytes) +
                              " bytes at distance " + llvm::Twine(offset) +
                              " of what is logged, and others are stored here");
      return;
    }
  }
  if (const std::optional<std::string> difference =
          find_difference(frame, *table.resume, region, logged, scene.facts)) {
    scene.reports.error(*frame.call, 'c',
                        "the resume form of this region goes on otherwise: " + *difference);
  }
}

}  // namespace

void check_live_ins(const FunctionScene& scene) {
  for (const llvm::Instruction& instruction : llvm::instructions(scene.function)) {
    const std::optional<Frame> frame = frame_of(instruction);
    if (!frame.has_value()) continue;
    check_frame(scene, *frame);
    const Table* table = scene.facts.table(frame->function);
    const auto* number = llvm::dyn_cast<llvm::ConstantInt>(frame->region);
    if (table == nullptr || number == nullptr) continue;
    if (number->getZExtValue() >= table->regions.size()) continue;
    check_loads(scene, *frame, *table, number->getZExtValue());
  }
}

}  // namespace pawl::compiler::fase_verifier
