// How a refused call is reported: errno for the program, one line on stderr for the person.
#pragma once

#include "preload/interpose.h"

#include <string>
#include <string_view>

#include "medium/status.h"

namespace pawl::preload {

// "pawl: CALL: TEXT", cut to kMessageBytesMax.  Takes no memory, and leaves errno alone.  Lost
// where standard error takes no more and nobody reads it.  Of many equal ones some are left out,
// and the next that is said tells how many.
void say(std::string_view call, std::string_view text);
inline constexpr unsigned kMessageBytesMax = 1024;

// What has its number now is standard error: at the beginning, and when the program put it there by
// a call that copies descriptors.
void adopt_standard_error();

// say(), then errno = error_number.  Returns -1.
int refuse(std::string_view call, int error_number, std::string_view text);
int refuse(std::string_view call, const Status& failure);

}  // namespace pawl::preload
