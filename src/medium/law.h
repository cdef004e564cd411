// The laws that keep a file whole, and a switch for tests that breaks one of them: a try of the
// crash laboratory that cannot tell a Pawl with a broken law from a whole one is worth nothing.
//
// Only a build with PAWL_BREAKABLE (the CMake option, the preset `breakable`) has the switch: there
// the environment variable PAWL_BREAK names the law to be broken.  In every other build nothing is
// ever broken, and the compiler drops what asks.
#pragma once

namespace pawl {

// Each law, and what happens when it is broken.
// clang-format off
#define PAWL_LAWS(LAW) \
  LAW(acknowledge_after_flush) /* a commit is acknowledged before its record is flushed */ \
  LAW(apply_after_flush) /* a record is applied before it is flushed */ \
  LAW(diff_against_committed) /* pages are compared with the base, which lags */ \
  LAW(check_the_checksum) /* a record is believed whatever its checksums say */ \
  LAW(one_epoch) /* a record of an earlier life of the journal is believed */ \
  LAW(replay_is_idempotent) /* replaying what stands in the base already does harm */ \
  LAW(flush_what_was_replayed) /* recovery empties the journal before the base is flushed */ \
  LAW(flush_before_release) /* a checkpoint drops records before the base is flushed */ \
  LAW(grow_behind_records) /* a journal grows from where the record that was just written begins */ \
  LAW(flush_before_growth) /* a header tells of a larger journal before that is durable */ \
  LAW(two_headers) /* the journal's header is overwritten in place */ \
  LAW(shrink_with_the_commit) /* a shrink reaches the base before it is committed */ \
  LAW(cut_with_the_commit) /* recovery forgets that the file was shorter for a while */ \
  LAW(size_with_the_commit) /* recovery forgets the file's size */ \
  LAW(only_the_range) /* a commit of a range takes all pages */ \
  LAW(keep_what_failed) /* a commit that fails forgets its pages */ \
  LAW(space_first) /* a commit takes no space in the base before it is acknowledged */ \
  LAW(space_where_shared) /* ... nor where the base shares its blocks with a copy */ \
  LAW(failed_flush_is_final) /* a flush that failed is tried again and believed */ \
  LAW(failed_write_is_final) /* a write of the journal that failed is believed to have done nothing */ \
  LAW(bound_from_quiescence) /* the fault log is believed from a moment when a fault was in flight */ \
  LAW(flush_the_mark) /* the flush behind a changed mark leaves attributes out */ \
  LAW(mark_only_if_none) /* an opener overwrites the mark of another, who opened another name */ \
  LAW(ask_for_writers) /* nobody asks whether a marked file has a writer under another name */ \
  LAW(original_journal) /* a copy of the journal is taken for the original */ \
  LAW(mark_before_journal) /* a close removes the journal before it clears the mark */ \
  LAW(tell_of_damage) /* a hole among durable records is taken for their end */ \
  LAW(ranges_within_the_file) /* a record's ranges are not held against the file's size */ \
  LAW(advice_keeps_stores) /* advice on a mapping's memory goes to the kernel as it is */ \
  LAW(flush_the_edges) /* a copy into memory leaves bytes that fill no word in the cache */ \
  LAW(fence_what_was_copied) /* a flush of memory has no fence */ \
  LAW(sync_the_size) /* a flush of memory forgets that the file's size changed */ \
  LAW(members_of_the_group) /* a group's journal may change whatever file it lists */ \
  LAW(child_may_not_commit) /* a child that no handler knew commits and closes for its parent */ \
  LAW(keep_the_descriptors) /* what a number stands for by now is not asked before it is written */ \
  LAW(frame_before_store) /* a FASE goes on before its frame is durable */ \
  LAW(outputs_before_frame) /* a frame is written before what it goes on from is durable */ \
  LAW(frame_before_unlock) /* a lock is released before the frame without it is durable */ \
  LAW(list_before_blocks) /* blocks are used and free before the list that takes them back is durable */ \
  LAW(all_locks_first) /* recovery finishes a FASE before it has the locks of the others */ \
  LAW(undo_before_store) /* a store of undo comes before what it overwrites is durable in the log */ \
  LAW(undo_outputs_before_end) /* an end of undo is logged before what was stored is durable */ \
  LAW(undo_dependents) /* a FASE that saw what is undone is not undone with it */
// clang-format on

#define PAWL_LAW_NAMED(name) name,
enum class Law { PAWL_LAWS(PAWL_LAW_NAMED) };
#undef PAWL_LAW_NAMED

#ifdef PAWL_BREAKABLE
bool is_broken(Law law);
#else
constexpr bool is_broken(Law) { return false; }
#endif

}  // namespace pawl
