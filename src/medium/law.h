// The laws that keep a file whole, and a switch for tests that breaks one of them: a try of the
// crash laboratory that cannot tell a Pawl with a broken law from a whole one is worth nothing.
//
// Only a build with PAWL_BREAKABLE (the CMake option, the preset `breakable`) has the switch: there
// the environment variable PAWL_BREAK names the law to be broken.  In every other build nothing is
// ever broken, and the compiler drops what asks.
#pragma once

namespace pawl {

enum class Law {
  acknowledge_after_flush,  // a commit is acknowledged before its record is flushed
  apply_after_flush,        // a record is applied before it is flushed
  diff_against_committed,   // pages are compared with the base, which lags
  check_the_checksum,       // a record is believed whatever its checksums say
  one_epoch,                // a record of an earlier life of the journal is believed
  replay_is_idempotent,     // replaying what stands in the base already does harm
  flush_what_was_replayed,  // recovery empties the journal before the base is flushed
  flush_before_release,     // a checkpoint drops records before the base is flushed
  two_headers,              // the journal's header is overwritten in place
  shrink_with_the_commit,   // a shrink reaches the base before it is committed
  cut_with_the_commit,      // recovery forgets that the file was shorter for a while
  size_with_the_commit,     // recovery forgets the file's size
  only_the_range,           // a commit of a range takes all pages
  keep_what_failed,         // a commit that fails forgets its pages
  space_first,              // a commit takes no space in the base before it is acknowledged
  failed_flush_is_final,    // a flush that failed is tried again and believed
  mark_before_journal,      // a close removes the journal before it clears the mark
  tell_of_damage,           // a hole among durable records is taken for their end
  ranges_within_the_file,   // a record's ranges are not held against the file's size
};

#ifdef PAWL_BREAKABLE
bool is_broken(Law law);
#else
constexpr bool is_broken(Law) { return false; }
#endif

}  // namespace pawl
