#include "track/fault_counts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "medium/law.h"
#include "medium/medium.h"
#include "medium/memory_functions.h"

namespace pawl {

namespace {

constexpr std::size_t kProcessStatBytesMax = 1024;
// Fields of /proc/PID/stat behind the name in parentheses (proc(5): field 20, the name is 2).
constexpr int kThreadsField = 18;

// An open file that is closed in the end.
class ProcFile {
 public:
  explicit ProcFile(const char* path) : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~ProcFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;
  ProcFile(ProcFile&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }

  // What the file says at this moment, as far as it fits; empty when it cannot be read.
  template <std::size_t kBytes>
  std::string_view read_into(std::array<char, kBytes>& buffer, std::size_t bytes = kBytes) const {
    const ssize_t count = descriptor_ < 0 ? -1 : pread(descriptor_, buffer.data(), bytes, 0);
    return {buffer.data(), count < 0 ? 0 : static_cast<std::size_t>(count)};
  }

 private:
  int descriptor_;
};

std::int64_t faults_by_usage_of(int who) {
  rusage usage{};
  PAWL_ASSERT(getrusage(who, &usage) == 0);
  return std::int64_t{usage.ru_minflt} + std::int64_t{usage.ru_majflt};
}

// 0 when the kernel does not say.
std::size_t count_threads() {
  std::array<char, kProcessStatBytesMax> buffer;
  const std::string_view text =
      ProcFile("/proc/self/stat").read_into(buffer, kProcessStatBytesMax - 1);
  std::size_t at = text.rfind(')');
  for (int field = 0; field < kThreadsField && at != std::string_view::npos; ++field)
    at = text.find(' ', at + 1);
  if (at == std::string_view::npos) return 0;
  buffer[text.size()] = '\0';
  return std::strtoul(buffer.data() + at, nullptr, 10);
}

// What the kernel says of a thread's system call: "running", or where it is blocked.
class Thread {
 public:
  explicit Thread(const std::string& id) : call_(("/proc/self/task/" + id + "/syscall").c_str()) {}
  bool is_blocked() const {
    std::array<char, 16> buffer;
    const std::string_view text = call_.read_into(buffer);
    return !text.empty() && text[0] != 'r';
  }
  bool is_alive() const {
    std::array<char, 16> buffer;
    return !call_.read_into(buffer).empty();
  }

 private:
  ProcFile call_;
};

}  // namespace

std::optional<std::int64_t> count_faults(FaultsOf whose, machine_faults::Text& text) {
  return whose == FaultsOf::machine ? machine_faults::count(text) : faults_by_usage_of(RUSAGE_SELF);
}

std::int64_t count_own_faults() { return faults_by_usage_of(RUSAGE_THREAD); }

// The kernel opens a page for a call under the lock of the memory map, for reading, and counts the
// fault before it lets go.  This changes nothing, but takes that lock for writing.
bool wait_for_faults_of_calls() {
  alignas(kPageBytes) static std::array<char, kPageBytes> page;
  return memory::protect(page.data(), page.size(), PROT_READ | PROT_WRITE) == 0;
}

// A listing may miss a thread when another ends meanwhile.  So: all that were listed were blocked;
// then there are as many threads as were listed; and after that all listed ones still live.  Then
// these were all threads at the moment of the count, and one that was missed has ended before.
bool see_other_threads_blocked() {
  if (is_broken(Law::bound_from_quiescence)) return true;
  if (count_threads() == 1) return true;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/task"), closedir);
  if (directory == nullptr) return false;
  const std::string self = std::to_string(syscall(SYS_gettid));
  std::vector<Thread> others;
  bool all_blocked = true;
  while (const dirent* entry = all_blocked ? readdir(directory.get()) : nullptr) {
    if (entry->d_name[0] == '.' || self == entry->d_name) continue;
    others.emplace_back(entry->d_name);
    all_blocked = others.back().is_blocked();
  }
  if (!all_blocked || count_threads() != others.size() + 1) return false;
  for (const Thread& thread : others) {
    if (!thread.is_alive()) return false;
  }
  return true;
}

}  // namespace pawl
