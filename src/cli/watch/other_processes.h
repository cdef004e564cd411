// Looks through /proc for who has a file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "cli/watch/facts.h"

namespace pawl::cli::watch {

struct Holder {
  FileKey file;
  std::string text;  // "process 12 (name) has it open for writing"
};

struct Scan {
  std::vector<Holder> holders;
  std::set<std::string> limits;
};

// Processes other than `known` and this one that have one of the files open for writing or mapped
// shared and writable.
Scan find_holders(const std::set<FileKey>& files, const std::set<pid_t>& known);

// The numbers under which a process has the file open.
std::vector<int> descriptors_of(pid_t process, const FileKey& file);

std::size_t count_descriptors_of(pid_t process);

// Where a symbolic link leads; empty when that cannot be read.
std::string target_of(const std::string& link);

// "12 (name)".
std::string process_text(pid_t process);

}  // namespace pawl::cli::watch
