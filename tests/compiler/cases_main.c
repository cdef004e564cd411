// Runs the cases of the file that it is linked with.
#include "cases.h"

struct test_case* first_case;

int main(void) {
  arena();
  for (struct test_case* each = first_case; each != 0; each = each->next) {
    run_case(each->name, each->body, each->marks);
  }
  return report();
}
