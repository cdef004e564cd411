// Whether a restore could open the files that the program had open, or mapped.
#pragma once

#include <chrono>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/file_proof.h"
#include "wsp/process/kept_memory.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// Opens them as a restore does, and maps those that were mapped, in a child that is left alone
// where that takes longer (ETIMEDOUT, which names the file whose server does not answer).
Status check_saved_files(const SavedProcess& saved, const KeptMemory& memory,
                         std::chrono::milliseconds longest);
// Of a program that runs, the open ones: those that were not judged when they were captured, as a
// server has them; and the ways to those that its rights do not open any more.
Status foresee_files(const SavedProcess& saved, std::chrono::milliseconds longest);

// ETIMEDOUT: the name is in the hands of a server that does not answer.
Status server_is_silent(const std::string& name);

// To be mapped as the program had it.
Result<Descriptor> open_mapped(const std::string& name, const FileProof& had,
                               const SavedProcess& saved);

}  // namespace pawl::wsp
