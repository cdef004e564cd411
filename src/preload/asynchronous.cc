#include "preload/asynchronous.h"

#include <string>

#include "medium/environment.h"
#include "preload/messages.h"

namespace pawl::preload {
namespace {

bool waits = false;

}  // namespace

void read_ms_async() {
  const char* const variable = environment_variable("PAWL_MS_ASYNC");
  const std::string value = variable == nullptr || *variable == '\0' ? "async" : variable;
  // Of two meanings, the one that loses nothing.
  waits = value != "async";
  if (waits && value != "sync")
    say("PAWL_MS_ASYNC", "is async or sync, not " + value + "; MS_ASYNC waits, as with sync");
}

bool ms_async_waits() { return waits; }

}  // namespace pawl::preload
