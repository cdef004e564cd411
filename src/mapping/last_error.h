// What is behind pawl_last_error() and pawl_last_error_code(), and the way from a Status to errno
// and -1.
#pragma once

#include "medium/status.h"

namespace pawl {

// Keeps text and code for this thread and sets errno.
void set_last_error(const Status& status);
const char* last_error_text();
pawl_error last_error_code();

}  // namespace pawl
