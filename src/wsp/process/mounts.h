// What file systems are mounted here, from the kernel's list: to ask one itself (statfs(2)) is to
// ask its server.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace pawl::wsp {

// Reads the list when it is first asked.
class Mounts {
 public:
  // Of the mount that /proc/PID/fdinfo names (mnt_id): the type of its file system (proc, nfs4);
  // empty where it is not one of ours.
  const std::string& type_of(std::uint64_t mount);

 private:
  void read();

  bool is_read_ = false;
  std::map<std::uint64_t, std::string> types_;
};

// Whether a file system of that type answers by itself: no server, and no other file system whose
// server it could be.
bool answers_by_itself(const std::string& type);

}  // namespace pawl::wsp
