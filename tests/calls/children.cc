// What a child may do with the memory that it inherited from a process with atomic mappings, and
// with memory of its own at the same addresses: compared with the same program without Pawl.
//
//   children [--directory D] [--pawl COMMAND]
//
// Each case is one child, made by fork(), _Fork() or clone(), of a program that uses Pawl by its
// functions, by `pawl run`, or not at all, with each tracker.  The child ends with 0 when all went
// as it must, with a message otherwise, or by SIGSEGV where it stores what it may not.  Behind each
// child its parent commits, and its file is compared with what was acknowledged.
//
// Exits with 0 when all went so, 1 when something did not, 2 when it could not do what it was
// asked.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pawl/heap.h"
#include "pawl/pawl.h"
#include "pawl/store.h"

namespace pawl::test::calls {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 16;
constexpr std::size_t kBytes = kPages * kPage;
// More open pages, each apart, than the fault tracker opens one by one.
constexpr std::size_t kLargeBytes = 20000 * kPage;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr unsigned kSecondsMax = 60;  // of a child

enum class Way { plain, library, preload };
enum class Kind { fork, under_fork, clone };

struct Settings {
  Way way = Way::plain;
  bool has_runs = false;       // without Pawl, or the tracker `fault`
  bool states_stores = false;  // the tracker `store`
  std::string directory;
};
Settings settings;
const char* case_now = "";

std::string path_of(const std::string& name) { return settings.directory + "/" + name; }

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "children: %s: %s (errno %d: %s; pawl: %s)\n", case_now, what.c_str(), errno,
               std::strerror(errno), pawl_last_error());
  std::fflush(stderr);
  ::_exit(1);
}
void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

int new_file(const std::string& name, std::size_t bytes) {
  const int file =
      ::open(path_of(name).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);  // NOLINT
  expect(file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0, "a new file");
  return file;
}

// A mapping of the file's, atomic if there is Pawl: `pawl run` tracks those whose name begins so.
int new_mapped_file(const std::string& name, std::size_t bytes) {
  return new_file("mapped." + name, bytes);
}
char* map(int file, std::size_t bytes, void* address = nullptr, int flags = 0) {
  void* const at = settings.way == Way::library
                       ? pawl_mmap(address, bytes, kReadWrite, MAP_ATOMIC | flags, file, 0)
                       : ::mmap(address, bytes, kReadWrite, MAP_SHARED | flags, file, 0);
  if (at == MAP_FAILED) fail("mapping a file");
  return static_cast<char*>(at);
}
int sync(void* address, std::size_t bytes) {
  return settings.way == Way::library ? pawl_msync(address, bytes, MS_SYNC)
                                      : ::msync(address, bytes, MS_SYNC);
}
int unmap(void* address, std::size_t bytes) {
  return settings.way == Way::library ? pawl_munmap(address, bytes) : ::munmap(address, bytes);
}
void store(char* at, char value) {
  *const_cast<volatile char*>(at) = value;
  if (settings.states_stores) pawl_stored(at, 1);
}
char byte_of(int file, std::size_t offset) {
  char byte = 0;
  expect(::pread(file, &byte, 1, static_cast<off_t>(offset)) == 1, "reading a file");
  return byte;
}

// What a parent gives to the child of a case.
struct Inherited {
  char* window;
  int file;  // that it shows
  int turn;  // a byte comes when the parent has let go of it
};

// Memory of the child's at the same address; where another was given, there is nothing to see.
char* map_there(const Inherited& in, int protection, int file, int flags = 0) {
  const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const at = ::mmap(in.window, kBytes, protection, kind | flags, file, 0);
  expect(at != MAP_FAILED, "mapping at the same address");
  if (at != in.window) ::_exit(0);
  return static_cast<char*>(at);
}
// As above, and to be stored to in vain.
void store_in_vain(char* at) {
  // The parent expects SIGSEGV, and nothing else.
  std::signal(SIGSEGV, SIG_DFL);
  store(at, 'X');
  fail("a store was let through");
}

void commit_own(char* at, int file, std::size_t bytes) {
  for (std::size_t page = 0; page < bytes / kPage; page += 2) store(at + page * kPage, 'c');
  expect(sync(at, bytes) == 0, "committing what the child mapped");
  store(at + 1, 'd');
  expect(sync(at, bytes) == 0, "committing once more");
  expect(unmap(at, bytes) == 0, "unmapping what the child mapped");
  expect(byte_of(file, 1) == 'd' && byte_of(file, 0) == 'c', "what was acknowledged");
}

void refuses_commits(char* at, std::size_t bytes) {
  errno = 0;
  const int outcome = ::msync(at, bytes, MS_SYNC);
  if (settings.way == Way::plain) return expect(outcome == 0, "msync()");
  expect(outcome == -1 && errno == EPERM, "msync() of the copy is refused");
  if (settings.way == Way::library) {
    expect(pawl_msync(at, bytes, MS_SYNC) == -1 && (errno == EPERM || errno == ENOMEM),
           "pawl_msync() of the copy is refused");
  }
}

struct Case {
  const char* name;
  bool is_fatal;  // the child ends by SIGSEGV
  std::function<void(const Inherited&)> in_child;
  bool maps_files = false;  // atomically
  std::function<void(const Inherited&)> before = {};
  bool parent_lets_go = false;
};

std::vector<Case> all_cases() {
  const auto dont_fork = [](const Inherited& in) {
    expect(::madvise(in.window, kBytes, MADV_DONTFORK) == 0, "MADV_DONTFORK");
  };
  const auto unmap_all = [](const Inherited& in) {
    expect(::munmap(in.window, kBytes) == 0, "unmapping the copy");
  };
  const auto other_file = [](const Inherited& in) {
    const int file = new_file("other", kBytes);
    char* const at = map_there(in, kReadWrite, file);
    store(at + 7, 'o');
    expect(::msync(at, kBytes, MS_SYNC) == 0, "msync() of an ordinary file");
    expect(::mprotect(at, kPage, PROT_READ) == 0, "mprotect() of an ordinary file");
    expect(::munmap(at, kBytes) == 0, "munmap() of an ordinary file");
    expect(byte_of(file, 7) == 'o', "an ordinary file has what was stored");
  };
  const auto larger = [](const Inherited& in) {
    const int file = new_mapped_file("larger", 2 * kLargeBytes);
    char* const at = map(file, 2 * kLargeBytes, in.window - kLargeBytes / 2);
    std::string stored(2 * kLargeBytes / kPage, '\0');
    for (char round = 1; round < 4; ++round) {
      // Every second page first, so that each is open apart.
      for (std::size_t page = 0; page < stored.size(); page += round == 1 ? 2 : 1) {
        store(at + page * kPage, round);
        stored[page] = round;
      }
      expect(sync(at, 2 * kLargeBytes) == 0, "committing a large file");
    }
    expect(unmap(at, 2 * kLargeBytes) == 0, "unmapping a large file");
    for (std::size_t page = 0; page < stored.size(); ++page)
      expect(byte_of(file, page * kPage) == stored[page], "a large file has what was acknowledged");
  };
  const auto read_into = [](char* at) {
    std::array<int, 2> pipe{};
    expect(::pipe(pipe.data()) == 0 && ::write(pipe[1], "hello", 5) == 5, "a pipe");
    return ::read(pipe[0], at, 5);
  };
  const auto in_grandchild = [](const std::function<void()>& call) {
    const pid_t process = ::fork();
    if (process == 0) {
      call();
      ::_exit(0);
    }
    int status = 0;
    expect(::waitpid(process, &status, 0) == process, "a grandchild");
    if (WIFSIGNALED(status)) ::raise(WTERMSIG(status));
    if (status != 0) ::_exit(1);
  };

  std::vector<Case> cases;
  const auto add = [&](Case one) { cases.push_back(std::move(one)); };

  // The copy.
  add({"the copy takes stores and refuses commits", false, [](const Inherited& in) {
         expect(in.window[0] == 'p', "the copy has what was committed");
         for (std::size_t page = 0; page < kPages; ++page) store(in.window + page * kPage + 9, 'x');
         expect(in.window[9] == 'x', "the copy has what was stored");
         refuses_commits(in.window, kBytes);
       }});
  add({"the kernel stores into the copy", false, [=](const Inherited& in) {
         expect(read_into(in.window + 3 * kPage) == 5, "read() into the copy");
         refuses_commits(in.window + kPage, kPage);
       }});
  add({"the copy is unmapped", false, [=](const Inherited& in) {
         unmap_all(in);
         expect(::msync(in.window, kBytes, MS_SYNC) == -1 && errno == ENOMEM, "msync() of nothing");
       }});
  add({"the copy is unmapped by pawl_munmap()", false, [=](const Inherited& in) {
         expect(unmap(in.window, kBytes) == 0, "unmapping the copy");
         expect(::msync(in.window, kBytes, MS_SYNC) == -1 && errno == ENOMEM, "msync() of nothing");
         other_file(in);
       }});
  add({"a part of the copy is unmapped", false, [](const Inherited& in) {
         expect(::munmap(in.window + 4 * kPage, 4 * kPage) == 0, "unmapping a part");
         store(in.window + 2 * kPage, 'x');
         store(in.window + 12 * kPage, 'x');
         refuses_commits(in.window, 4 * kPage);
         refuses_commits(in.window + 8 * kPage, 8 * kPage);
         expect(::msync(in.window + 4 * kPage, 4 * kPage, MS_SYNC) == -1 && errno == ENOMEM,
                "msync() of a hole");
       }});
  add({"the copy is protected and opened again", false, [](const Inherited& in) {
         expect(::mprotect(in.window, kBytes, PROT_READ) == 0, "mprotect() to read");
         expect(in.window[0] == 'p', "the copy is read");
         expect(::mprotect(in.window, kBytes, kReadWrite) == 0, "mprotect() to write");
         store(in.window + 5 * kPage, 'x');
         refuses_commits(in.window, kBytes);
       }});
  add({"a store into the copy that the child protected", true, [](const Inherited& in) {
         expect(::mprotect(in.window, kBytes, PROT_READ) == 0, "mprotect()");
         store_in_vain(in.window + 5);
       }});
  add({"a store into the copy that the child protected behind one", true, [](const Inherited& in) {
         store(in.window + 5, 'x');
         expect(::mprotect(in.window, kBytes, PROT_READ) == 0, "mprotect()");
         store_in_vain(in.window + 5);
       }});
  add({"a store into a part of the copy that the child protected", true, [](const Inherited& in) {
         expect(::mprotect(in.window + 4 * kPage, kPage, PROT_READ) == 0, "mprotect() of a part");
         store(in.window + 3 * kPage, 'x');
         store(in.window + 5 * kPage, 'x');
         store_in_vain(in.window + 4 * kPage);
       }});
  add({"read() into the copy that the child protected", false, [=](const Inherited& in) {
         expect(::mprotect(in.window, kBytes, PROT_READ) == 0, "mprotect()");
         expect(read_into(in.window) == -1 && errno == EFAULT, "read() is refused");
       }});
  add({"a store into a part that the parent protected", true,
       [](const Inherited& in) {
         store(in.window + 3 * kPage, 'x');
         store(in.window + 5 * kPage, 'x');
         store_in_vain(in.window + 4 * kPage);
       },
       false,
       [](const Inherited& in) {
         expect(::mprotect(in.window + 4 * kPage, kPage, PROT_READ) == 0, "mprotect() of a part");
       }});
  add({"the copy is moved", false, [](const Inherited& in) {
         store(in.window + kPage, 'x');
         void* const place = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         void* const at = ::mremap(in.window, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
         expect(at == place, "mremap() of the copy");
         store(static_cast<char*>(at) + 2 * kPage, 'x');
         expect(static_cast<char*>(at)[kPage] == 'x', "what was moved is as it was");
         expect(::msync(in.window, kBytes, MS_SYNC) == -1 && errno == ENOMEM, "msync() of nothing");
       }});
  add({"the copy stays as long as it is, by an odd length", false, [](const Inherited& in) {
         expect(::mremap(in.window, kPage + 1, 2 * kPage, 0) == in.window, "mremap() in its place");
         store(in.window + kPage, 'x');
         refuses_commits(in.window + kPage, kPage);
       }});

  // Other memory in its place.
  for (const bool is_inherited : {true, false}) {
    const auto before = is_inherited ? std::function<void(const Inherited&)>{} : dont_fork;
    const auto leave = [=](const Inherited& in) {
      if (is_inherited) unmap_all(in);
    };
    const auto named = [=](const char* there, const char* never) {
      return is_inherited ? there : never;
    };
    add({named("a store into guard pages at the same address",
               "a store into guard pages where nothing was inherited"),
         true,
         [=](const Inherited& in) {
           leave(in);
           store_in_vain(map_there(in, PROT_NONE, -1) + 100);
         },
         false, before});
    add({named("a store into a file that is read at the same address",
               "a store into a file that is read where nothing was inherited"),
         true,
         [=](const Inherited& in) {
           leave(in);
           store_in_vain(map_there(in, PROT_READ, new_file("other", kBytes)) + 100);
         },
         false, before});
    add({named("read() into guard pages at the same address",
               "read() into guard pages where nothing was inherited"),
         false,
         [=](const Inherited& in) {
           leave(in);
           expect(read_into(map_there(in, PROT_NONE, -1)) == -1 && errno == EFAULT,
                  "read() is refused");
         },
         false, before});
    add({named("an ordinary file at the same address",
               "an ordinary file where nothing was inherited"),
         false,
         [=](const Inherited& in) {
           leave(in);
           other_file(in);
         },
         false, before});
    add({named("a file of the child's at the same address",
               "a file of the child's where nothing was inherited"),
         false,
         [=](const Inherited& in) {
           leave(in);
           const int file = new_mapped_file("own", kBytes);
           commit_own(map(file, kBytes, in.window), file, kBytes);
         },
         true, before});
    add({named("a larger file of the child's around the same address",
               "a larger file of the child's where nothing was inherited"),
         false,
         [=](const Inherited& in) {
           leave(in);
           larger(in);
         },
         true, before});
    add({named("a grandchild stores into its parent's guard pages",
               "a grandchild stores into its parent's guard pages where nothing was inherited"),
         true,
         [=](const Inherited& in) {
           leave(in);
           char* const at = map_there(in, PROT_NONE, -1);
           in_grandchild([at] { store_in_vain(at); });
         },
         false, before});
    add({named("a grandchild uses its parent's memory at the same address",
               "a grandchild uses its parent's memory where nothing was inherited"),
         false,
         [=](const Inherited& in) {
           leave(in);
           char* const at = map_there(in, kReadWrite, -1);
           store(at, 'y');
           expect(::mprotect(at, kPage, PROT_READ) == 0, "mprotect()");
           in_grandchild([=] {
             expect(at[0] == 'y', "what the child stored");
             store(at + 2 * kPage, 'z');
             expect(read_into(at + 3 * kPage) == 5, "read() into memory of its own");
             expect(::munmap(at, kBytes) == 0, "munmap()");
           });
         },
         false, before});
  }
  add({"a store into guard pages over the copy", true,
       [](const Inherited& in) { store_in_vain(map_there(in, PROT_NONE, -1, MAP_FIXED) + 100); }});
  add({"a store into guard pages over a part of the copy", true, [](const Inherited& in) {
         void* const at = ::mmap(in.window + 4 * kPage, kPage, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
         expect(at == in.window + 4 * kPage, "mapping over a part");
         store(in.window + 3 * kPage, 'x');
         store(in.window + 5 * kPage, 'x');
         refuses_commits(in.window, 4 * kPage);
         store_in_vain(static_cast<char*>(at));
       }});
  add({"a store into guard pages that were moved over the copy", true, [](const Inherited& in) {
         void* const guard = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         void* const at = ::mremap(guard, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, in.window);
         expect(at == in.window, "mremap() over the copy");
         store_in_vain(in.window);
       }});
  add({"an ordinary file over the copy", false, [](const Inherited& in) {
         const int file = new_file("other", kBytes);
         char* const at = map_there(in, kReadWrite, file, MAP_FIXED);
         store(at + 7, 'o');
         expect(::msync(at, kBytes, MS_SYNC) == 0 && ::munmap(at, kBytes) == 0, "an ordinary file");
         expect(byte_of(file, 7) == 'o', "an ordinary file has what was stored");
       }});
  add({"a file of the child's over the copy", false,
       [](const Inherited& in) {
         const int file = new_mapped_file("own", kBytes);
         char* const at = map(file, kBytes, in.window, MAP_FIXED);
         expect(at == in.window, "mapping over the copy");
         commit_own(at, file, kBytes);
       },
       true});
  add({"a file of the child's beside the copy", false,
       [](const Inherited& in) {
         const int file = new_mapped_file("own", kBytes);
         commit_own(map(file, kBytes), file, kBytes);
         refuses_commits(in.window, kBytes);
       },
       true});

  // Grandchildren.
  add({"a grandchild has the copy", false, [=](const Inherited& in) {
         store(in.window + kPage, 'x');
         in_grandchild([&in] {
           expect(in.window[0] == 'p' && in.window[kPage] == 'x', "the copy of the copy");
           store(in.window + 2 * kPage, 'y');
           refuses_commits(in.window, kBytes);
         });
       }});
  add({"a grandchild stores into the copy that its parent protected", true,
       [=](const Inherited& in) {
         expect(::mprotect(in.window, kBytes, PROT_READ) == 0, "mprotect()");
         in_grandchild([&in] { store_in_vain(in.window + 5); });
       }});

  // The parent lets go of its file.
  add({"the child maps the file that its parent let go of",
       false,
       [](const Inherited& in) {
         char turn = 0;
         expect(::read(in.turn, &turn, 1) == 1, "the parent lets go");
         const int file = ::open(path_of("mapped.parent").c_str(), O_RDWR | O_CLOEXEC);
         ::close(in.file);
         char* const at = map(file, 2 * kBytes);
         expect(at[0] == 'p', "the file has what was committed");
         store(at + 5, 'c');
         expect(sync(at, 2 * kBytes) == 0, "committing");
         const off_t size = kBytes + kPage;
         expect((settings.way == Way::library ? pawl_ftruncate(file, size)
                                              : ::ftruncate(file, size)) == 0,
                "setting the size");
         store(at + kBytes, 'd');
         expect(sync(at, 2 * kBytes) == 0, "committing a larger file");
         expect(unmap(at, 2 * kBytes) == 0, "unmapping");
         expect(byte_of(file, 5) == 'c' && byte_of(file, kBytes) == 'd', "what was acknowledged");
       },
       true,
       {},
       true});
  return cases;
}

bool is_large(const Case& one) { return std::strstr(one.name, "larger") != nullptr; }

pid_t make_child(Kind kind) {
  switch (kind) {
    case Kind::fork:
      return ::fork();
    case Kind::under_fork:
      return ::_Fork();
    default:
      return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  }
}
const char* name_of(Kind kind) {
  return kind == Kind::fork ? "fork" : kind == Kind::under_fork ? "_Fork" : "clone";
}

// Empty when the child ended as it must.
std::string wait_for(pid_t process, bool is_fatal) {
  int status = 0;
  if (process <= 0 || ::waitpid(process, &status, 0) != process) return "there is no child";
  const bool died = WIFSIGNALED(status);
  if (is_fatal ? died && WTERMSIG(status) == SIGSEGV : status == 0) return {};
  if (is_fatal && status == 0) return {};  // the kernel gave another address
  return died ? "the child was killed by signal " + std::to_string(WTERMSIG(status))
              : "the child ended with " + std::to_string(WEXITSTATUS(status));
}

std::string try_case(const Case& one, Kind kind) {
  case_now = one.name;
  const std::size_t bytes = is_large(one) ? kLargeBytes : kBytes;
  const int file = new_mapped_file("parent", bytes);
  char* const window = map(file, bytes);
  store(window, 'p');
  if (sync(window, bytes) != 0) return "the parent cannot commit";
  std::array<int, 2> turn{};
  if (::pipe(turn.data()) != 0) return "there is no pipe";
  const Inherited inherited{window, file, turn[0]};
  store(window + 6 * kPage, 'q');  // open as the child is made
  if (one.before) one.before(inherited);
  if (is_large(one) && one.before) ::madvise(window, bytes, MADV_DONTFORK);
  const pid_t process = make_child(kind);
  if (process == 0) {
    ::alarm(kSecondsMax);
    if (is_large(one) && !one.before) ::munmap(window + kBytes, bytes - kBytes);
    one.in_child(inherited);
    ::_exit(0);
  }
  if (one.parent_lets_go && (unmap(window, bytes) != 0 || ::close(file) != 0))
    return "the parent cannot let go";
  if (::write(turn[1], "t", 1) != 1) return "there is no turn";
  std::string wrong = wait_for(process, one.is_fatal);
  ::close(turn[0]);
  ::close(turn[1]);
  if (one.parent_lets_go) return wrong;
  store(window + 1, 'r');
  const bool is_committed = sync(window, bytes) == 0;
  const bool is_unmapped = unmap(window, bytes) == 0;
  const bool has_all =
      byte_of(file, 0) == 'p' && byte_of(file, 1) == 'r' && byte_of(file, 6 * kPage) == 'q';
  ::close(file);
  if (!wrong.empty()) return wrong;
  if (!is_committed || !is_unmapped) return "the parent cannot commit and unmap any more";
  if (!has_all) return "the parent's file has not what was acknowledged";
  return {};
}

// A heap of its parent's, in a child, which has no way to see that it is closed.
void use_heap(const Inherited& in, bool closes_first) {
  pawl_heap* const heap = *reinterpret_cast<pawl_heap**>(in.window);
  char turn = 0;
  expect(::read(in.turn, &turn, 1) == 1, "the parent closes its heap");
  expect(pawl_heap_malloc(heap, 8) == nullptr && errno == EPERM, "the copy gives no blocks");
  if (!closes_first) {
    expect(pawl_heap_open(path_of("heap").c_str(), nullptr) == nullptr && errno == EADDRINUSE &&
               std::strstr(pawl_last_error(), "pawl_heap_close") != nullptr,
           "the copy is in the way, and what to do is said");
  }
  expect(pawl_heap_close(heap) == 0, "closing the copy");
  pawl_heap* const own = pawl_heap_open(path_of("heap").c_str(), nullptr);
  expect(own != nullptr, "opening the heap that the parent closed");
  const char* const root = static_cast<char*>(pawl_heap_named_root(own, "r", nullptr));
  expect(root != nullptr && std::strcmp(root, "hello") == 0, "what the parent committed");
  auto* const block = static_cast<char*>(pawl_heap_malloc(own, 100));
  expect(block != nullptr && pawl_heap_of(block) == own, "a block of the child's heap");
  store(block, 'c');
  expect(pawl_heap_set_named_root(own, "c", block, 0) == 0 && pawl_heap_sync(own) == 0 &&
             pawl_heap_close(own) == 0,
         "committing and closing the heap");
}

std::string try_heap(Kind kind, bool closes_first) {
  case_now = closes_first ? "the child closes a heap, and opens it" : "the child opens a heap";
  ::unlink(path_of("heap").c_str());
  pawl_heap* heap = pawl_heap_open(path_of("heap").c_str(), nullptr);
  expect(heap != nullptr, "a heap");
  auto* const block = static_cast<char*>(pawl_heap_malloc(heap, 100));
  std::memcpy(block, "hello", 6);
  if (settings.states_stores) pawl_stored(block, 6);
  expect(pawl_heap_set_named_root(heap, "r", block, 0) == 0 && pawl_heap_sync(heap) == 0,
         "committing a heap");
  std::array<int, 2> turn{};
  expect(::pipe(turn.data()) == 0, "a pipe");
  const pid_t process = make_child(kind);
  if (process == 0) {
    ::alarm(kSecondsMax);
    use_heap({reinterpret_cast<char*>(&heap), -1, turn[0]}, closes_first);
    ::_exit(0);
  }
  expect(pawl_heap_close(heap) == 0 && ::write(turn[1], "t", 1) == 1, "closing a heap");
  std::string wrong = wait_for(process, false);
  ::close(turn[0]);
  ::close(turn[1]);
  return wrong;
}

int run_cases(Kind kind) {
  int wrong_cases = 0;
  const auto judge = [&](const std::string& wrong) {
    if (wrong.empty()) return;
    std::fprintf(stderr, "wrong: %s: %s\n", case_now, wrong.c_str());
    ++wrong_cases;
  };
  if (settings.states_stores) pawl_stored(&wrong_cases, 1);  // says that stores are marked
  // Neither may a child that the preload library knows nothing of map files, nor one mark stores.
  const bool may_map =
      kind == Kind::fork || (settings.way != Way::preload && !settings.states_stores);
  for (const Case& one : all_cases()) {
    if (is_large(one) && !settings.has_runs) continue;
    if (!one.maps_files || may_map) judge(try_case(one, kind));
  }
  if (settings.way == Way::library && may_map) {
    for (const bool closes_first : {true, false}) judge(try_heap(kind, closes_first));
  }
  return wrong_cases == 0 ? 0 : 1;
}

struct Round {
  const char* way;
  const char* tracker;
  Kind kind;
};

// True when all went as it must.
bool try_round(const Round& round, const std::string& directory, const std::string& pawl) {
  const std::string place = directory + "/children." + std::to_string(::getpid());
  std::filesystem::create_directory(place);
  std::vector<std::string> words;
  if (std::strcmp(round.way, "preload") == 0) words = {pawl, "run", "--atomic", "mapped.*", "--"};
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const std::string& word :
       {self, std::string("program"), std::string(round.way), std::string(round.tracker),
        std::string(name_of(round.kind)), place})
    words.push_back(word);
  std::vector<char*> values;
  for (std::string& word : words) values.push_back(word.data());
  values.push_back(nullptr);
  const pid_t process = ::fork();
  if (process == 0) {
    ::setenv("PAWL_TRACKER", round.tracker, 1);
    ::setenv("PAWL_JOURNAL_SIZE", "1M", 1);
    ::execv(values[0], values.data());
    ::_exit(127);
  }
  int status = -1;
  ::waitpid(process, &status, 0);
  std::filesystem::remove_all(place);
  if (status != 0)
    std::printf("wrong: way %s, tracker %s, child of %s (status %d)\n", round.way, round.tracker,
                name_of(round.kind), status);
  return status == 0;
}

int run_program(char** values) {
  const std::string way = values[2];
  settings.way = way == "library" ? Way::library : way == "preload" ? Way::preload : Way::plain;
  settings.states_stores = settings.way != Way::plain && std::string(values[3]) == "store";
  settings.has_runs = settings.way == Way::plain || std::string(values[3]) == "fault";
  settings.directory = values[5];
  const std::string kind = values[4];
  return run_cases(kind == "fork" ? Kind::fork : kind == "_Fork" ? Kind::under_fork : Kind::clone);
}

int run_rounds(int count, char** values) {
  std::string directory = ".";
  std::string pawl;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = values[i];
    if (name == "--directory") {
      directory = values[i + 1];
    } else if (name == "--pawl") {
      pawl = values[i + 1];
    } else {
      throw std::invalid_argument("unknown argument " + name);
    }
  }
  bool is_right = true;
  for (const Kind kind : {Kind::fork, Kind::under_fork, Kind::clone}) {
    is_right = try_round({"plain", "auto", kind}, directory, pawl) && is_right;
    for (const char* const tracker : {"auto", "fault", "store"}) {
      for (const char* const way : {"library", "preload"})
        is_right = try_round({way, tracker, kind}, directory, pawl) && is_right;
    }
  }
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace pawl::test::calls

int main(int count, char** values) {
  using namespace pawl::test::calls;
  try {
    if (count == 6 && std::string(values[1]) == "program") return run_program(values);
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    return run_rounds(count, values);
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "children: %s\n", exception.what());
    return 2;
  }
}
