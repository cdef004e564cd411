/* Prints the layouts and the numbers of pawl.h, one a line, for layout_test.py to compare. */
#include <pawl/pawl.h>
#include <stdio.h>

#define FIELD(structure, member) \
  printf("%s.%s %zu %zu\n", #structure, #member, offsetof(struct structure, member), \
         sizeof(((struct structure*)0)->member))
#define SIZE(structure) printf("%s %zu\n", #structure, sizeof(struct structure))
#define NUMBER(name) printf("%s %ld\n", #name, (long)(name))

int main(void) {
  SIZE(pawl_options);
  FIELD(pawl_options, struct_size_bytes);
  FIELD(pawl_options, journal_size_bytes);
  FIELD(pawl_options, tracker);
  FIELD(pawl_options, medium);
  FIELD(pawl_options, apply);
  FIELD(pawl_options, apply_threshold_pages);
  FIELD(pawl_options, resident_bytes_max);
  FIELD(pawl_options, idle_poll_us);
  FIELD(pawl_options, durability);
  FIELD(pawl_options, hold_up_ms);
  FIELD(pawl_options, other_processes);
  SIZE(pawl_statistics);
  FIELD(pawl_statistics, commits);
  FIELD(pawl_statistics, bytes_logged);
  FIELD(pawl_statistics, bytes_changed);
  FIELD(pawl_statistics, dirty_pages);
  FIELD(pawl_statistics, changed_pages);
  FIELD(pawl_statistics, pages_applied);
  FIELD(pawl_statistics, checkpoints);
  FIELD(pawl_statistics, stalls);
  FIELD(pawl_statistics, rollbacks);
  FIELD(pawl_statistics, pages_dropped);
  FIELD(pawl_statistics, records_replayed);
  FIELD(pawl_statistics, journal_size_bytes);
  FIELD(pawl_statistics, journal_used_bytes);
  FIELD(pawl_statistics, scans_flat);
  FIELD(pawl_statistics, scans_located);
  FIELD(pawl_statistics, last_sequence);
  FIELD(pawl_statistics, unmarked_bytes);
  FIELD(pawl_statistics, outstanding_bytes);
  FIELD(pawl_statistics, outstanding_bytes_max);
  FIELD(pawl_statistics, tracker);
  FIELD(pawl_statistics, medium);
  FIELD(pawl_statistics, apply);
  FIELD(pawl_statistics, durability);
  FIELD(pawl_statistics, last_error_number);
  FIELD(pawl_statistics, last_error_code);
  FIELD(pawl_statistics, last_error);
  NUMBER(MAP_ATOMIC);
  NUMBER(MS_SYNC);
  NUMBER(MS_ASYNC);
  NUMBER(MS_INVALIDATE);
  NUMBER(PAWL_TRACKER_AUTO);
  NUMBER(PAWL_TRACKER_SCAN);
  NUMBER(PAWL_TRACKER_FAULT);
  NUMBER(PAWL_TRACKER_STORE);
  NUMBER(PAWL_MEDIUM_AUTO);
  NUMBER(PAWL_MEDIUM_BLOCK);
  NUMBER(PAWL_MEDIUM_MEMORY);
  NUMBER(PAWL_APPLY_ASYNC);
  NUMBER(PAWL_APPLY_EAGER);
  NUMBER(PAWL_DURABILITY_FLUSH);
  NUMBER(PAWL_DURABILITY_ON_FAIL);
  return 0;
}
