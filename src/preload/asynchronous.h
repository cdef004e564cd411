// What msync(MS_ASYNC) is to a program that was not written for Pawl: PAWL_MS_ASYNC.
#pragma once

#include "preload/interpose.h"

namespace pawl::preload {

// Reads PAWL_MS_ASYNC.  Call it once.
void read_ms_async();

// True where the person asked (PAWL_MS_ASYNC=sync) that MS_ASYNC return when its commit is durable:
// for a program whose only flush it is, as that of Boost.Interprocess.
bool ms_async_waits();

}  // namespace pawl::preload
