// What the search for cuts knows at a point of a function: what was done since the last cut.
//
// A cut may be made only if some object is in persistent memory: then a write to that object has
// it, and others have not.  So for each of the objects that such a cut may ask for it is kept apart
// what is so if that object is persistent.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace pawl::compiler::fase {

// On some way to the point.
struct SinceCut {
  bool lacks_cut = false;  // since the last end of a region
  llvm::BitVector reads;

  void forget() {
    lacks_cut = false;
    reads.reset();
  }
};

class CutState {
 public:
  // The state of nothing being known of any object.
  static constexpr unsigned kAnyObject = 0;

  CutState() = default;
  // At the beginning of a function.  Objects have the numbers from 1 on.
  CutState(unsigned objects, unsigned reads) : since_(objects + 1) {
    for (SinceCut& since : since_) {
      since.lacks_cut = true;
      since.reads.resize(reads);
    }
  }

  bool is_reached() const { return !since_.empty(); }
  const SinceCut& since(unsigned object) const { return since_[object]; }

  void read(unsigned number) {
    for (SinceCut& since : since_) since.reads.set(number);
  }
  void end_region() {
    for (SinceCut& since : since_) {
      since.forget();
      since.lacks_cut = true;
    }
  }
  void cut() {
    for (SinceCut& since : since_) since.forget();
  }
  void cut_if_any(llvm::ArrayRef<unsigned> objects) {
    for (const unsigned object : objects) since_[object].forget();
  }
  // The object is another one from here on, of which nothing was asked.
  void rename(unsigned object) { since_[object] = since_[kAnyObject]; }

  // True when something is new.
  bool join(const CutState& other) {
    if (!is_reached()) {
      *this = other;
      return true;
    }
    bool is_new = false;
    for (unsigned i = 0; i < since_.size(); ++i) {
      SinceCut& mine = since_[i];
      const SinceCut& others = other.since_[i];
      is_new |= (others.lacks_cut && !mine.lacks_cut) || others.reads.test(mine.reads);
      mine.lacks_cut |= others.lacks_cut;
      mine.reads |= others.reads;
    }
    return is_new;
  }

 private:
  llvm::SmallVector<SinceCut, 2> since_;  // empty: no way leads here
};

}  // namespace pawl::compiler::fase
