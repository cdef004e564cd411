#include "track/fault_sampler.h"

#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "medium/medium.h"

namespace pawl {

namespace {

constexpr int kAttachAttemptsMax = 8;
// Largest first: 16,384 samples a processor, within what an unprivileged process may lock.
constexpr std::size_t kRingPages[] = {64, 16, 4};

Result<std::vector<int>> list_threads() {
  DIR* directory = opendir("/proc/self/task");
  if (directory == nullptr) return FailedCall{errno, "cannot read /proc/self/task"};
  std::vector<int> threads;
  while (const dirent* entry = readdir(directory)) {
    const int thread_id = std::atoi(entry->d_name);
    if (thread_id > 0) threads.push_back(thread_id);
  }
  closedir(directory);
  // The caller first: the rings belong to its events, and it does not exit meanwhile.
  const auto self =
      std::find(threads.begin(), threads.end(), static_cast<int>(syscall(SYS_gettid)));
  if (self != threads.end()) std::iter_swap(threads.begin(), self);
  return threads;
}

}  // namespace

Result<std::unique_ptr<FaultSampler>> FaultSampler::attach(std::size_t descriptors_max) {
  const int processors = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int attempt = 0; attempt < kAttachAttemptsMax; ++attempt) {
    std::unique_ptr<FaultSampler> sampler(new FaultSampler);
    Result<std::vector<int>> threads = list_threads();
    if (!threads.ok()) return threads.status();
    if (threads.value().size() * static_cast<std::size_t>(processors) * 2 > descriptors_max) {
      return Status::failure(EMFILE, "too many threads and processors for a page-fault log");
    }
    for (const int thread_id : threads.value())
      PAWL_TRY(sampler->open_thread(thread_id, processors));

    // A thread that appeared meanwhile may have inherited the events or not.  Only a list without
    // newcomers is sure, for a thread sampled twice would be as bad as one not sampled.
    Result<std::vector<int>> threads_after = list_threads();
    if (!threads_after.ok()) return threads_after.status();
    const std::vector<int>& before = threads.value();
    const bool settled =
        std::all_of(threads_after.value().begin(), threads_after.value().end(), [&](int thread_id) {
          return std::find(before.begin(), before.end(), thread_id) != before.end();
        });
    if (settled) return sampler;
  }
  return Status::failure(EAGAIN, "threads come and go too fast to start a page-fault log");
}

FaultSampler::~FaultSampler() {
  for (const Ring& ring : rings_) munmap(ring.control, kPageBytes + ring.size_bytes);
}

void FaultSampler::abandon_in_child() {
  descriptors_.clear();
  rings_.clear();
}

Status FaultSampler::open_thread(int thread_id, int processors) {
  for (int processor = 0; processor < processors; ++processor) {
    for (const std::uint64_t event :
         {PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_PAGE_FAULTS_MAJ}) {
      auto opened = open_event(event, thread_id, processor);
      if (!opened.ok()) {
        if (opened.status().error_number() == ESRCH) return {};  // the thread has exited
        if (opened.status().error_number() == ENODEV) break;     // the processor is off
        return opened.status();
      }
      const int descriptor = opened.value().get();
      descriptors_.push_back(std::move(opened.value()));
      const auto ring = std::find_if(rings_.begin(), rings_.end(), [&](const Ring& candidate) {
        return candidate.processor == processor;
      });
      if (ring == rings_.end()) {
        PAWL_TRY(map_ring(descriptor, processor));
      } else if (ioctl(descriptor, PERF_EVENT_IOC_SET_OUTPUT, ring->descriptor) != 0) {
        return FailedCall{errno, "cannot gather page-fault events in one ring"};
      }
    }
  }
  return {};
}

Result<Descriptor> FaultSampler::open_event(std::uint64_t event, int thread_id, int processor) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.config = event;
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_ADDR;
  attributes.inherit = 1;
  attributes.inherit_thread = 1;
  attributes.exclude_hv = 1;
  while (true) {
    // Without the right to sample the kernel, its stores on the program's behalf stay unsampled;
    // they are still counted, so the log is then not believed.
    attributes.exclude_kernel = exclude_kernel_ ? 1 : 0;
    Descriptor event_descriptor(static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, thread_id, processor, -1, PERF_FLAG_FD_CLOEXEC)));
    if (event_descriptor.valid()) return event_descriptor;
    if ((errno == EACCES || errno == EPERM) && !exclude_kernel_) {
      exclude_kernel_ = true;
      continue;
    }
    return FailedCall{errno,
                      "perf page-fault events cannot be had (kernel.perf_event_paranoid above 2, a "
                      "container's seccomp filter, or a kernel before 5.13)"};
  }
}

Status FaultSampler::map_ring(int descriptor, int processor) {
  int error_number = 0;
  for (const std::size_t pages : kRingPages) {
    const std::size_t size_bytes = pages * kPageBytes;
    void* ring =
        mmap(nullptr, kPageBytes + size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (ring == MAP_FAILED) {
      error_number = errno;
      continue;
    }
    rings_.push_back({static_cast<perf_event_mmap_page*>(ring),
                      static_cast<char*>(ring) + kPageBytes, size_bytes, 0, descriptor, processor});
    return {};
  }
  return FailedCall{error_number, "cannot map a page-fault log (kernel.perf_event_mlock_kb)"};
}

}  // namespace pawl
