// Whose a directory is: what a program keeps and what a machine keeps lies under names that both
// use, and each would take the other's save for none.
#pragma once

#include "medium/status.h"
#include "wsp/directory/own_directory.h"

namespace pawl::wsp {

inline constexpr const char* kProgramImageFile = "image";
inline constexpr const char* kMachineMarkerFile = "marker";
inline constexpr const char* kMachineDescriptionFile = "machine.json";

// EEXIST where a machine was kept.
Status refuse_a_machines(const OwnDirectory& directory);
// EEXIST where a program was kept.
Status refuse_a_programs(const OwnDirectory& directory);

}  // namespace pawl::wsp
