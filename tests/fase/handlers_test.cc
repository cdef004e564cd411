// Handlers of signals, wherever they interrupt a thread: in ordinary code, in the run-time itself,
// in a section.
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "fase/crash_everywhere.h"
#include "fase/direct_memory.h"
#include "fase/hand_made.h"
#include "fase/thread.h"

namespace pawl {
namespace {

using test::LiveIns;
using test::store;

struct Data {
  pthread_mutex_t lock;
  pthread_mutex_t of_handler;
  alignas(64) std::uint64_t a;
  std::uint64_t b;
  alignas(64) std::uint64_t c;
  alignas(64) std::uint64_t last;
};

// A section that stores `c`; nobody resumes it.
void section() {}
void resume(std::uint32_t, const void*, const void*, void*) { std::abort(); }
constexpr pawl_fase_region kRegions[] = {{1, 0, PAWL_FASE_AT_CUT}};
const pawl_fase_function functions[] = {
    {test::address_of(&section), resume, "section", "handlers.c", kRegions, 1, 0},
};
[[maybe_unused]] const bool registered = [] {
  pawl_fase_register(functions, functions + 1);
  return true;
}();

void set_in_section(pthread_mutex_t& lock, std::uint64_t& at, std::uint64_t value) {
  EXPECT_EQ(pawl_fase_mutex_lock(&lock), 0);
  pawl_fase_cut(functions, 0, nullptr);
  store(at, value);
  EXPECT_EQ(pawl_fase_mutex_unlock(&lock, nullptr, 0, nullptr), 0);
}

// What is durable of some lines of the file, by what the run-time has done.  Handlers interrupt it.
class Durable final : public fase::Observer {
 public:
  void watch(const Data& data) { first_ = line_of(reinterpret_cast<const std::byte*>(&data)); }

  void stored(const std::byte* at, std::size_t count) override {
    for_each(at, count, [](State& state) { state = State::stored; });
  }
  void word_stored(const std::uint64_t*, std::uint64_t) override {}
  void flushed(const std::byte* at, std::size_t count) override {
    for_each(at, count, [](State& state) {
      if (state == State::stored) state = State::flushed;
    });
    if (after_flush) std::exchange(after_flush, nullptr)();
  }
  void fenced() override {
    for (State& state : states_) {
      if (state == State::flushed) state = State::durable;
    }
  }
  bool has(const std::uint64_t& at) const {
    return states_[line_of(reinterpret_cast<const std::byte*>(&at)) - first_] == State::durable;
  }

  std::function<void()> after_flush;  // once

 private:
  enum class State { durable, stored, flushed };
  static std::uint64_t line_of(const std::byte* at) {
    return reinterpret_cast<std::uint64_t>(at) / kLineBytes;
  }
  template <class Change>
  void for_each(const std::byte* at, std::size_t count, Change change) {
    for (std::uint64_t line = line_of(at); line <= line_of(at + count - 1); ++line) {
      if (line - first_ < states_.size()) change(states_[line - first_]);
    }
  }

  std::uint64_t first_ = 0;
  std::array<State, sizeof(Data) / kLineBytes + 1> states_{};
};

std::function<void()> what_handlers_do;

// As it is compiled.
void handle(int) {
  void* const token = pawl_fase_handler_begin(__builtin_return_address(0));
  const auto act = what_handlers_do;  // it may be interrupted by another
  act();
  pawl_fase_handler_end(token);
}
void interrupt(std::function<void()> handler) {
  what_handlers_do = std::move(handler);
  EXPECT_EQ(::raise(SIGUSR1), 0);
}

void in_new_thread(const std::function<void()>& act) { std::thread(act).join(); }

// All that ordinary code asks of the run-time.
void check_everything() {
  static int variable = 0;
  pawl_fase_cut(functions, 0, nullptr);
  pawl_fase_call(functions, 0, nullptr);
  pawl_fase_call_indirect(functions, 0, nullptr, &variable);
  pawl_fase_return();
  pawl_fase_volatile_load(functions, 1, &variable);
  EXPECT_EQ(pawl_fase_volatile_target(&variable, sizeof variable), &variable);
  pawl_fase_refuse(functions, 1, "nothing");
  pawl_fase_refuse_unarmed(functions, 1, "nothing");
}

class FaseHandlers : public test::FaseTest {
 protected:
  FaseHandlers() {
    open_and([](pawl_fase* fase) {
      auto* const data = static_cast<Data*>(pawl_fase_calloc(fase, 1, sizeof(Data)));
      EXPECT_EQ(pawl_fase_mutex_init(&data->lock, nullptr), 0);
      EXPECT_EQ(pawl_fase_mutex_init(&data->of_handler, nullptr), 0);
      EXPECT_EQ(pawl_fase_set_root(fase, data), 0);
    });
    struct sigaction action = {};
    action.sa_handler = handle;
    action.sa_flags = SA_NODEFER;
    EXPECT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  }
  ~FaseHandlers() override { ::signal(SIGUSR1, SIG_DFL); }

  void with_data(const std::function<void(pawl_fase*, Data&)>& act) {
    fase::observe(&durable_);
    open_and([&](pawl_fase* fase) {
      Data& data = *static_cast<Data*>(pawl_fase_root(fase));
      durable_.watch(data);
      act(fase, data);
    });
    fase::observe(nullptr);
  }

  Durable durable_;
};

TEST_F(FaseHandlers, WhatOneStoredOutsideOfSectionsWasNotDurable) {
  with_data([&](pawl_fase*, Data& data) {
    interrupt([&] {
      store(data.a, std::uint64_t{1});
      EXPECT_TRUE(durable_.has(data.a));
    });
  });
}

TEST_F(FaseHandlers, WhatOneStoredToALineOfItsThreadWasNotDurable) {
  with_data([&](pawl_fase*, Data& data) {
    store(data.a, std::uint64_t{1});
    interrupt([&] {
      store(data.b, std::uint64_t{1});
      EXPECT_TRUE(durable_.has(data.b));
    });
  });
}

TEST_F(FaseHandlers, WhatOneStoredWhileItsThreadWroteBackWasNotDurable) {
  with_data([&](pawl_fase*, Data& data) {
    store(data.a, std::uint64_t{1});
    store(data.c, std::uint64_t{1});
    bool was_called = false;
    durable_.after_flush = [&] {
      interrupt([&] {
        store(data.b, std::uint64_t{1});
        EXPECT_TRUE(durable_.has(data.b));
        was_called = true;
      });
    };
    set_in_section(data.lock, data.b, 2);
    EXPECT_TRUE(was_called);
    EXPECT_TRUE(durable_.has(data.a));
    EXPECT_TRUE(durable_.has(data.b));
    EXPECT_TRUE(durable_.has(data.c));
  });
}

TEST_F(FaseHandlers, WhatOneStoredBesideAStoreOfASectionWasLost) {
  with_data([&](pawl_fase*, Data& data) {
    EXPECT_EQ(pawl_fase_mutex_lock(&data.lock), 0);
    pawl_fase_cut(functions, 0, nullptr);
    store(data.a, std::uint64_t{1});
    interrupt([&] {
      store(data.b, std::uint64_t{1});
      EXPECT_TRUE(durable_.has(data.b));
    });
    store(data.c, std::uint64_t{1});
    EXPECT_EQ(pawl_fase_mutex_unlock(&data.lock, nullptr, 0, nullptr), 0);
    EXPECT_TRUE(durable_.has(data.c));
  });
}

TEST_F(FaseHandlers, OneInAThreadThatTheRunTimeDidNotKnowMadeItKnown) {
  with_data([&](pawl_fase* fase, Data& data) {
    in_new_thread([&] {
      interrupt([&] {
        check_everything();
        EXPECT_EQ(pawl_fase_root(fase), &data);
        EXPECT_EQ(pawl_fase_set_root(fase, &data), 0);
        EXPECT_GT(pawl_fase_usable_size(fase, &data), 0u);
        store(data.a, std::uint64_t{1});
        EXPECT_TRUE(durable_.has(data.a));
        EXPECT_EQ(pawl_fase_persist(&data.a, sizeof data.a), 0);
      });
      EXPECT_EQ(fase::the_thread, nullptr);
    });
  });
}

TEST_F(FaseHandlers, ACheckInAThreadThatTheRunTimeDidNotKnowMadeItKnown) {
  with_data([&](pawl_fase*, Data&) {
    in_new_thread([&] {
      check_everything();
      EXPECT_EQ(fase::the_thread, nullptr);
    });
  });
}

// The entry of a fibre returns to whatever its maker put there.
TEST(FaseHandlersOfFibres, WhatReturnsToNoCodeWasReadThere) {
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4095}, std::uint64_t{1} << 63,
        ~std::uint64_t{0}, std::uint64_t{0xdead'beef'dead'beef}}) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is none
    EXPECT_EQ(pawl_fase_handler_begin(reinterpret_cast<const void*>(number)), nullptr);
  }
}

// A mark that could be an address, and a call that is the last instruction of what is mapped.
TEST(FaseHandlersOfFibres, WhatReturnsToNoMemoryWasReadThere) {
  constexpr std::uint64_t kMark = 0xdead'beef;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is none
  EXPECT_EQ(pawl_fase_handler_begin(reinterpret_cast<const void*>(kMark)), nullptr);
  const long page = ::sysconf(_SC_PAGESIZE);
  void* const pages = ::mmap(nullptr, static_cast<std::size_t>(2 * page), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const end = static_cast<std::uint8_t*>(pages) + page;
  ASSERT_EQ(::mprotect(end, static_cast<std::size_t>(page), PROT_NONE), 0);
  EXPECT_EQ(pawl_fase_handler_begin(end), nullptr);
#ifdef __x86_64__
  // As the call of rt_sigreturn(2) begins.
  end[-2] = 0x48;
  end[-1] = 0xc7;
  EXPECT_EQ(pawl_fase_handler_begin(end - 2), nullptr);
#endif
  ::munmap(pages, static_cast<std::size_t>(2 * page));
}

#ifdef __x86_64__
// The processor's trap flag: it interrupts the thread behind each instruction.
void step_from_here() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
      :
      :
      : "cc", "memory");
}
constexpr greg_t kTrapFlag = 0x100;

int steps;
int step_of_handler;
bool is_stepping;
void handle_step(int, siginfo_t*, void* context) {
  void* const token = pawl_fase_handler_begin(__builtin_return_address(0));
  if (++steps == step_of_handler) what_handlers_do();
  if (!is_stepping || steps == step_of_handler)
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  pawl_fase_handler_end(token);
}

int steps_of(const std::function<void()>& act, int with_handler) {
  steps = 0;
  step_of_handler = with_handler;
  is_stepping = true;
  step_from_here();
  act();
  is_stepping = false;
  return steps;
}

// Does `act` again and again, with the handler behind another of its instructions each time.
void interrupt_everywhere(int stride, const std::function<void()>& act,
                          const std::function<void()>& handler,
                          const std::function<void()>& check) {
  struct sigaction action = {};
  action.sa_sigaction = handle_step;
  action.sa_flags = SA_SIGINFO;
  EXPECT_EQ(::sigaction(SIGTRAP, &action, nullptr), 0);
  what_handlers_do = handler;
  act();  // what is only done once
  const int all = steps_of(act, 0);
  EXPECT_GT(all, 20);
  for (int point = 1; point < all; point += stride) {
    check();
    steps_of(act, point);
    check();
    if (testing::Test::HasFailure()) break;
  }
  ::signal(SIGTRAP, SIG_DFL);
}

TEST_F(FaseHandlers, WhatOneStoredInTheMidstOfAStoreWasLost) {
  with_data([&](pawl_fase*, Data& data) {
    interrupt_everywhere(
        1, [&] { store(data.a, std::uint64_t{1}); },
        [&] {
          store(data.b, std::uint64_t{1});
          EXPECT_TRUE(durable_.has(data.b)) << step_of_handler;
        },
        [&] {
          set_in_section(data.lock, data.c, 1);
          EXPECT_TRUE(durable_.has(data.a)) << step_of_handler;
        });
  });
}

constexpr int kStrideOfSection = 25;
TEST_F(FaseHandlers, WhatOneStoredInTheMidstOfASectionWasLost) {
  with_data([&](pawl_fase*, Data& data) {
    interrupt_everywhere(
        kStrideOfSection, [&] { set_in_section(data.lock, data.a, 1); },
        [&] {
          store(data.b, std::uint64_t{1});
          EXPECT_TRUE(durable_.has(data.b)) << step_of_handler;
        },
        [&] { EXPECT_TRUE(durable_.has(data.a)) << step_of_handler; });
  });
}

TEST_F(FaseHandlers, ASectionOfOneInTheMidstOfAStoreLostEither) {
  with_data([&](pawl_fase*, Data& data) {
    for (std::uint64_t* const at : {&data.a, &data.c}) {
      interrupt_everywhere(
          1, [&] { store(*at, std::uint64_t{1}); },
          [&] {
            set_in_section(data.of_handler, data.b, 1);
            EXPECT_TRUE(durable_.has(data.b)) << step_of_handler;
          },
          [&] {
            set_in_section(data.lock, data.last, 1);
            EXPECT_TRUE(durable_.has(*at)) << step_of_handler;
            store(*at, std::uint64_t{2});
            set_in_section(data.lock, data.last, 1);
            EXPECT_TRUE(durable_.has(*at)) << step_of_handler;
          });
    }
  });
}
#endif

// Who lets signals come only where he waits for them may do everything in a handler.
TEST_F(FaseHandlers, OneThatInterruptsNoSectionHasItsOwn) {
  with_data([&](pawl_fase* fase, Data& data) {
    const auto act = [&] {
      pawl_fase_statistics before;
      pawl_fase_statistics after;
      EXPECT_EQ(pawl_fase_stats(fase, &before), 0);
      interrupt([&] {
        set_in_section(data.of_handler, data.a, 5);
        EXPECT_TRUE(durable_.has(data.a));
        store(data.c, std::uint64_t{6});
        EXPECT_TRUE(durable_.has(data.c));
        void* const block = pawl_fase_malloc(fase, 100);
        EXPECT_NE(block, nullptr);
        EXPECT_EQ(pawl_fase_free(fase, block), 0);
        EXPECT_EQ(pawl_fase_mutex_trylock(&data.of_handler), 0);
        EXPECT_EQ(pawl_fase_mutex_trylock(&data.of_handler), EBUSY);
        EXPECT_EQ(pawl_fase_mutex_unlock(&data.of_handler, nullptr, 0, nullptr), 0);
        pawl_fase_section_begin();
        pawl_fase_section_end(nullptr, 0, nullptr);
        store(data.c, std::uint64_t{7});
        EXPECT_TRUE(durable_.has(data.c));
      });
      EXPECT_EQ(pawl_fase_stats(fase, &after), 0);
      EXPECT_EQ(after.sections, before.sections + 3);
      set_in_section(data.lock, data.b, 7);
      EXPECT_TRUE(durable_.has(data.b));
      EXPECT_EQ(data.a, 5u);
    };
    act();
    in_new_thread(act);
  });
}

TEST_F(FaseHandlers, OneThatInterruptsAnothersSectionIsOutsideOfIt) {
  with_data([&](pawl_fase* fase, Data& data) {
    interrupt([&] {
      EXPECT_EQ(pawl_fase_mutex_lock(&data.of_handler), 0);
      pawl_fase_cut(functions, 0, nullptr);
      store(data.a, std::uint64_t{1});
      interrupt([&] {
        check_everything();
        store(data.c, std::uint64_t{1});
        EXPECT_TRUE(durable_.has(data.c));
        EXPECT_EQ(pawl_fase_malloc(fase, 64), nullptr);
        EXPECT_EQ(errno, EBUSY);
      });
      store(data.b, std::uint64_t{1});
      EXPECT_EQ(pawl_fase_mutex_unlock(&data.of_handler, nullptr, 0, nullptr), 0);
      EXPECT_TRUE(durable_.has(data.b));
      interrupt([&] { set_in_section(data.of_handler, data.a, 2); });
      store(data.b, std::uint64_t{2});
      EXPECT_TRUE(durable_.has(data.b));
    });
    set_in_section(data.lock, data.a, 3);
    EXPECT_TRUE(durable_.has(data.a));
  });
}

TEST_F(FaseHandlers, AThreadThatLeftOneByAJumpGoesOn) {
  with_data([&](pawl_fase* fase, Data& data) {
    static sigjmp_buf behind;
    if (sigsetjmp(behind, 1) == 0) interrupt([] { siglongjmp(behind, 1); });
    set_in_section(data.lock, data.a, 1);
    EXPECT_TRUE(durable_.has(data.a));
    void* const block = pawl_fase_malloc(fase, 100);
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(pawl_fase_free(fase, block), 0);
    interrupt([&] { set_in_section(data.lock, data.b, 1); });
    EXPECT_TRUE(durable_.has(data.b));
  });
}

TEST_F(FaseHandlers, ARootThatWasSetBehindAJumpOutOfOneCameBeforeWhatItNames) {
  with_data([&](pawl_fase* fase, Data& data) {
    static sigjmp_buf behind;
    store(data.a, std::uint64_t{1});
    if (sigsetjmp(behind, 1) == 0) interrupt([] { siglongjmp(behind, 1); });
    EXPECT_EQ(pawl_fase_set_root(fase, &data), 0);
    EXPECT_TRUE(durable_.has(data.a));
  });
}

TEST_F(FaseHandlers, OneThatInterruptedAnothersCallTookTheLoanOfIt) {
  with_data([&](pawl_fase* fase, Data& data) {
    interrupt([&] {
      bool was_called = false;
      durable_.after_flush = [&] {
        interrupt([&] { set_in_section(data.of_handler, data.a, 1); });
        was_called = true;
      };
      EXPECT_NE(pawl_fase_malloc(fase, 100), nullptr);
      EXPECT_TRUE(was_called);
      store(data.c, std::uint64_t{1});
      EXPECT_TRUE(durable_.has(data.c));
    });
  });
}

// A supervisor forks in its handler, and the child goes on where the signal came.
TEST_F(FaseHandlers, AChildThatOneForkedKeptTheFileInItsThread) {
  with_data([&](pawl_fase*, Data& data) {
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    store(data.a, std::uint64_t{1});
    pid_t child = -1;
    interrupt([&] { child = ::fork(); });
    if (child == 0) {
      pawl_fase_mutex_lock(&own);
      pawl_fase_mutex_unlock(&own, nullptr, 0, nullptr);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

}  // namespace
}  // namespace pawl
