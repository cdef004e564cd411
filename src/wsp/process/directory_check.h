// Whether a restore could go to the directory in which the program is.
#pragma once

#include <chrono>

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// Goes there as a restore does, in a child that is left alone where that takes longer (ETIMEDOUT):
// of a file system whose server is gone.  What is wrong comes with what can be done about it.  A
// directory of the process itself (/proc/self) is there when it is, and not asked for.
Status check_directory(const SavedProcess& saved, std::chrono::milliseconds longest);

}  // namespace pawl::wsp
