#include "cli/watch/filter.h"

#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <sched.h>
#include <array>
#include <cstdint>

namespace pawl::cli::watch {

namespace {

using tracing::Rule;
using tracing::When;

// IORING_REGISTER_BUFFERS and IORING_REGISTER_BUFFERS2, of io_uring_register.
constexpr std::uint32_t kRegisterBuffers = 0;
constexpr std::uint32_t kRegisterBuffersTagged = 15;

constexpr std::uint32_t low(unsigned long request) { return static_cast<std::uint32_t>(request); }

constexpr std::array kRules = {
    // Memory.  Mappings without a file matter only where they are put over others.
    Rule{SYS_mmap, {When::has_bits, 3, MAP_FIXED}},
    Rule{SYS_mmap, {When::lacks_bits, 3, MAP_ANONYMOUS}},
    Rule{SYS_munmap},
    Rule{SYS_mremap},
    Rule{SYS_msync},
    Rule{SYS_remap_file_pages},
    Rule{SYS_mprotect, {When::has_bits, 2, PROT_WRITE}},
    Rule{SYS_pkey_mprotect},
    // Bytes and sizes.
    Rule{SYS_write},
    Rule{SYS_writev},
    Rule{SYS_pwrite64},
    Rule{SYS_pwritev},
    Rule{SYS_pwritev2},
    Rule{SYS_sendfile},
    Rule{SYS_splice},
    Rule{SYS_copy_file_range},
    Rule{SYS_truncate},
    Rule{SYS_ftruncate},
    Rule{SYS_fallocate},
    Rule{SYS_ioctl, {When::equals, 1, low(FICLONE)}},
    Rule{SYS_ioctl, {When::equals, 1, low(FICLONERANGE)}},
    Rule{SYS_ioctl, {When::equals, 1, low(FIDEDUPERANGE)}},
    Rule{SYS_io_submit},
    Rule{SYS_io_uring_setup},
    Rule{SYS_io_uring_register, {When::equals, 1, kRegisterBuffers}},
    Rule{SYS_io_uring_register, {When::equals, 1, kRegisterBuffersTagged}},
    // Durability.
    Rule{SYS_fsync},
    Rule{SYS_fdatasync},
    Rule{SYS_sync},
    Rule{SYS_syncfs},
    Rule{SYS_sync_file_range},
    // Names, descriptors, locks.
    Rule{SYS_open},
    Rule{SYS_openat},
    Rule{SYS_creat},
    Rule{SYS_mkdir},
    Rule{SYS_mkdirat},
    Rule{SYS_unlink},
    Rule{SYS_unlinkat},
    Rule{SYS_rename},
    Rule{SYS_renameat},
    Rule{SYS_renameat2},
    Rule{SYS_sendmsg},
    Rule{SYS_sendmmsg},
    Rule{SYS_dup2},
    Rule{SYS_dup3},
    Rule{SYS_flock},
    Rule{SYS_fcntl, {When::equals, 1, F_GETFL}},  // by it fdopen(3) asks what it gets
    Rule{SYS_fcntl, {When::equals, 1, F_SETLK}},
    Rule{SYS_fcntl, {When::equals, 1, F_SETLKW}},
    Rule{SYS_fcntl, {When::equals, 1, F_OFD_SETLK}},
    Rule{SYS_fcntl, {When::equals, 1, F_OFD_SETLKW}},
    // Processes.
    Rule{SYS_unshare, {When::has_bits, 0, CLONE_NEWUSER | CLONE_VM | CLONE_SIGHAND}},
    Rule{SYS_setns},
    Rule{SYS_clone, {When::has_bits, 0, CLONE_UNTRACED}},
    Rule{SYS_seccomp},
    Rule{SYS_prctl, {When::equals, 0, PR_SET_SECCOMP}},
    Rule{SYS_setsid},
    Rule{SYS_execve},
    Rule{SYS_execveat},
    Rule{SYS_exit_group},
};

}  // namespace

std::vector<sock_filter> make_filter() { return tracing::make_filter(kRules); }

}  // namespace pawl::cli::watch
