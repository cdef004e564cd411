// A place in the journal's ring, for a record.  One without a record would end recovery there: it
// is given back unless it got one.  The place outlives this.
#pragma once

#include "journal/journal.h"

namespace pawl {

class PlaceInHand {
 public:
  PlaceInHand(journal::Journal& journal, const journal::Place& place)
      : journal_(journal), place_(place) {}
  ~PlaceInHand() {
    if (!is_kept_) journal_.cancel(place_);
  }
  PlaceInHand(const PlaceInHand&) = delete;
  PlaceInHand& operator=(const PlaceInHand&) = delete;
  void keep() { is_kept_ = true; }

 private:
  journal::Journal& journal_;
  const journal::Place& place_;
  bool is_kept_ = false;
};

}  // namespace pawl
