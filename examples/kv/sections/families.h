// The families of commands of this server.
#pragma once

#include <span>

#include "commands.h"

namespace kv {

std::span<const Command> string_commands();
std::span<const Command> key_commands();

}  // namespace kv
