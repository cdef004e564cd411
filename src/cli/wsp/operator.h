// How a supervisor tells its operator something: neither a reader that stands still or is gone nor
// a full disk may end it, or keep it from the power's failure.
#pragma once

#include <string>

namespace pawl::cli {

// To be called before anything is opened: what takes the number of a closed standard stream would
// get the messages.
void hold_standard_streams();

// As complain(), where it can be written at once; else nobody hears it.
void tell_operator(const char* verb, const std::string& message);

}  // namespace pawl::cli
