/* Prints the size of the journal that a mapping would get, which PAWL_JOURNAL_SIZE sets. */
#include <pawl/pawl.h>
#include <stdio.h>

int main(void) {
  struct pawl_options options;
  if (pawl_options_init(&options) != 0) return 1;
  return printf("%llu\n", (unsigned long long)options.journal_size_bytes) > 0 ? 0 : 1;
}
