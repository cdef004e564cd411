// The text behind pawl_last_error(), and the way from a Status to errno and -1.
#pragma once

#include "medium/status.h"

namespace pawl {

// Keeps the text for this thread and sets errno.
void set_last_error(const Status& status);
const char* last_error_text();

}  // namespace pawl
