#include "library_calls.h"

#include <array>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

namespace pawl::compiler::fase {
namespace {

// They read what their arguments lead to, and nothing that changes.
constexpr std::array kReads = {
    llvm::StringLiteral{"memcmp"},    llvm::StringLiteral{"bcmp"},
    llvm::StringLiteral{"memchr"},    llvm::StringLiteral{"memrchr"},
    llvm::StringLiteral{"rawmemchr"}, llvm::StringLiteral{"memmem"},
    llvm::StringLiteral{"strlen"},    llvm::StringLiteral{"strnlen"},
    llvm::StringLiteral{"strcmp"},    llvm::StringLiteral{"strncmp"},
    llvm::StringLiteral{"strchr"},    llvm::StringLiteral{"strrchr"},
    llvm::StringLiteral{"strchrnul"}, llvm::StringLiteral{"strstr"},
    llvm::StringLiteral{"strspn"},    llvm::StringLiteral{"strcspn"},
    llvm::StringLiteral{"strpbrk"},
};

// They compute with numbers, and write errno at most.  The last are products and quotients of
// complex numbers.
constexpr std::array kComputes = {
    llvm::StringLiteral{"abs"},      llvm::StringLiteral{"labs"},
    llvm::StringLiteral{"llabs"},    llvm::StringLiteral{"ffs"},
    llvm::StringLiteral{"ffsl"},     llvm::StringLiteral{"ffsll"},
    llvm::StringLiteral{"div"},      llvm::StringLiteral{"ldiv"},
    llvm::StringLiteral{"sqrt"},     llvm::StringLiteral{"sqrtf"},
    llvm::StringLiteral{"floor"},    llvm::StringLiteral{"ceil"},
    llvm::StringLiteral{"round"},    llvm::StringLiteral{"trunc"},
    llvm::StringLiteral{"fabs"},     llvm::StringLiteral{"fmod"},
    llvm::StringLiteral{"pow"},      llvm::StringLiteral{"exp"},
    llvm::StringLiteral{"exp2"},     llvm::StringLiteral{"log"},
    llvm::StringLiteral{"log2"},     llvm::StringLiteral{"log10"},
    llvm::StringLiteral{"sin"},      llvm::StringLiteral{"cos"},
    llvm::StringLiteral{"tan"},      llvm::StringLiteral{"atan"},
    llvm::StringLiteral{"atan2"},    llvm::StringLiteral{"__mulsc3"},
    llvm::StringLiteral{"__muldc3"}, llvm::StringLiteral{"__mulxc3"},
    llvm::StringLiteral{"__multc3"}, llvm::StringLiteral{"__divsc3"},
    llvm::StringLiteral{"__divdc3"}, llvm::StringLiteral{"__divxc3"},
    llvm::StringLiteral{"__divtc3"},
};

constexpr std::array kUnrepeatable = {
    llvm::StringLiteral{"time"},         llvm::StringLiteral{"clock"},
    llvm::StringLiteral{"rand"},         llvm::StringLiteral{"random"},
    llvm::StringLiteral{"pthread_self"}, llvm::StringLiteral{"gettid"},
    llvm::StringLiteral{"getpid"},       llvm::StringLiteral{"sched_getcpu"},
    llvm::StringLiteral{"sched_yield"},  llvm::StringLiteral{"pthread_yield"},
    llvm::StringLiteral{"thrd_yield"},   llvm::StringLiteral{"thrd_current"},
};

constexpr std::array kEnds = {
    llvm::StringLiteral{"abort"},
    llvm::StringLiteral{"__assert_fail"},
    llvm::StringLiteral{"__assert_perror_fail"},
    llvm::StringLiteral{"__stack_chk_fail"},
    llvm::StringLiteral{"__chk_fail"},
    llvm::StringLiteral{"_exit"},
    llvm::StringLiteral{"_Exit"},
    llvm::StringLiteral{"_ZSt9terminatev"},
    llvm::StringLiteral{"__cxa_pure_virtual"},
    llvm::StringLiteral{"_ZSt21__glibcxx_assert_failPKciS0_S0_"},
};

// These call what they are given last, before they return.
constexpr std::array kCallers = {
    llvm::StringLiteral{"qsort"},
    llvm::StringLiteral{"bsearch"},
    llvm::StringLiteral{"pthread_once"},
};

// Of libstdc++, where something failed.
constexpr llvm::StringLiteral kThrowers = "_ZSt*__throw_*";

struct Refusal {
  llvm::StringLiteral name;  // a prefix where it ends in an asterisk
  llvm::StringLiteral what;
};

constexpr llvm::StringLiteral kAllocates =
    "volatile memory is allocated or freed: take pawl_fase_malloc() and pawl_fase_free()";
constexpr llvm::StringLiteral kThrows = "an exception is thrown";
constexpr llvm::StringLiteral kJumps = "control leaves by longjmp()";
constexpr llvm::StringLiteral kWaits = "the thread starts, ends or waits for another";
constexpr llvm::StringLiteral kAppends =
    "it would append once more when it is done again: take strlen() and memcpy()";
constexpr llvm::StringLiteral kMoves = "take memmove()";
constexpr llvm::StringLiteral kFormats =
    "what it writes depends on the process: do it before, into a local array, and copy that";
constexpr llvm::StringLiteral kCallsBack =
    "it calls a function back from where nothing was compiled for it: write the loop";
constexpr llvm::StringLiteral kDependsOnProcess =
    "what it returns depends on the process: call it before";
constexpr llvm::StringLiteral kPawls = "a call of Pawl's that cannot be done again";
constexpr llvm::StringLiteral kOutputs = "input and output cannot be done again";
constexpr llvm::StringLiteral kStops =
    "what it copies says where it ends: take memchr(), and memcpy() of what that finds";
constexpr llvm::StringLiteral kUnknown =
    "Pawl does not know that it can be done again: do it before, or after";

constexpr std::array kRefusals = {
    Refusal{"strcat", kAppends},
    Refusal{"strncat", kAppends},
    Refusal{"__strcat_chk", kAppends},
    Refusal{"__strncat_chk", kAppends},
    Refusal{"bcopy", kMoves},
    Refusal{"memccpy", kStops},
    Refusal{"__memccpy_chk", kStops},
    Refusal{"pawl_*", kPawls},
    Refusal{"malloc", kAllocates},
    Refusal{"calloc", kAllocates},
    Refusal{"realloc", kAllocates},
    Refusal{"reallocarray", kAllocates},
    Refusal{"free", kAllocates},
    Refusal{"cfree", kAllocates},
    Refusal{"aligned_alloc", kAllocates},
    Refusal{"posix_memalign", kAllocates},
    Refusal{"memalign", kAllocates},
    Refusal{"valloc", kAllocates},
    Refusal{"strdup", kAllocates},
    Refusal{"strndup", kAllocates},
    Refusal{"_Znw*", kAllocates},
    Refusal{"_Zna*", kAllocates},
    Refusal{"_Zdl*", kAllocates},
    Refusal{"_Zda*", kAllocates},
    Refusal{"__cxa_allocate_exception", kThrows},
    Refusal{"__cxa_guard_*",
            "a static variable of a function is made when it is first reached: reach it before"},
    Refusal{"__cxa_*", kThrows},
    Refusal{"_Unwind_*", kThrows},
    Refusal{"setjmp", kJumps},
    Refusal{"_setjmp", kJumps},
    Refusal{"sigsetjmp", kJumps},
    Refusal{"__sigsetjmp", kJumps},
    Refusal{"longjmp", kJumps},
    Refusal{"_longjmp", kJumps},
    Refusal{"siglongjmp", kJumps},
    Refusal{"__longjmp_chk", kJumps},
    Refusal{"pthread_*", kWaits},
    Refusal{"thrd_*", kWaits},
    Refusal{"sem_*", kWaits},
    Refusal{"exit", "the program ends in the middle of what is to be atomic"},
    Refusal{"quick_exit", "the program ends in the middle of what is to be atomic"},
    Refusal{"fork", "a new process cannot be taken back"},
    Refusal{"vfork", "a new process cannot be taken back"},
    Refusal{"clock_gettime", "a clock is read through a pointer: read it before"},
    Refusal{"gettimeofday", "a clock is read through a pointer: read it before"},
    Refusal{"__errno_location", "errno is gone when the section is resumed: use what calls return"},
    Refusal{"sprintf", kFormats},
    Refusal{"snprintf", kFormats},
    Refusal{"vsprintf", kFormats},
    Refusal{"vsnprintf", kFormats},
    Refusal{"__sprintf_chk", kFormats},
    Refusal{"__snprintf_chk", kFormats},
    Refusal{"__vsprintf_chk", kFormats},
    Refusal{"__vsnprintf_chk", kFormats},
    Refusal{"qsort", kCallsBack},
    Refusal{"bsearch", kCallsBack},
    Refusal{"ato*", kDependsOnProcess},
    Refusal{"strto*", kDependsOnProcess},
    Refusal{"syscall", kOutputs},
    Refusal{"read", kOutputs},
    Refusal{"write", kOutputs},
    Refusal{"recv", kOutputs},
    Refusal{"send", kOutputs},
    Refusal{"usleep", kWaits},
    Refusal{"sleep", kWaits},
    Refusal{"nanosleep", kWaits},
    Refusal{"ioctl", kOutputs},
    Refusal{"mmap", kOutputs},
    Refusal{"munmap", kOutputs},
    Refusal{"msync", kOutputs},
    Refusal{"fsync", kOutputs},
    Refusal{"close", kOutputs},
    Refusal{"printf", kOutputs},
    Refusal{"vprintf", kOutputs},
    Refusal{"fprintf", kOutputs},
    Refusal{"vfprintf", kOutputs},
    Refusal{"dprintf", kOutputs},
    Refusal{"__printf_chk", kOutputs},
    Refusal{"__fprintf_chk", kOutputs},
    Refusal{"puts", kOutputs},
    Refusal{"putc*", kOutputs},
    Refusal{"fput*", kOutputs},
    Refusal{"fwrite*", kOutputs},
    Refusal{"fflush*", kOutputs},
    Refusal{"perror", kOutputs},
    Refusal{"scanf", kOutputs},
    Refusal{"fscanf", kOutputs},
    Refusal{"getc*", kOutputs},
    Refusal{"gets", kOutputs},
    Refusal{"fget*", kOutputs},
    Refusal{"fread*", kOutputs},
    Refusal{"fopen*", kOutputs},
    Refusal{"fclose", kOutputs},
    Refusal{"fseek*", kOutputs},
    Refusal{"open", kOutputs},
    Refusal{"open64", kOutputs},
    Refusal{"pread*", kOutputs},
    Refusal{"pwrite*", kOutputs},
    Refusal{"_ZNSo*", kOutputs},
    Refusal{"_ZNSi*", kOutputs},
    Refusal{"_ZStlsI*", kOutputs},
    Refusal{"_ZSt16__ostream_insert*", kOutputs},
};

llvm::StringRef plain_name(const llvm::Function& function) {
  llvm::StringRef name = function.getName();
  name.consume_front("\01");
  return name;
}

bool matches(llvm::StringRef pattern, llvm::StringRef name) {
  const auto [head, rest] = pattern.split('*');
  if (head.size() == pattern.size()) return name == pattern;
  if (!name.consume_front(head)) return false;
  const llvm::StringRef middle = rest.rtrim('*');
  return middle.empty() || name.contains(middle);
}

const Refusal* refusal(llvm::StringRef name) {
  for (const Refusal& known : kRefusals) {
    if (matches(known.name, name)) return &known;
  }
  return nullptr;
}

// And gives one; else it is a function of the program with the same name.
bool takes_numbers_only(const llvm::Function& function) {
  return !function.getReturnType()->isVoidTy() &&
         llvm::none_of(function.args(), [](const llvm::Argument& argument) {
           return argument.getType()->isPtrOrPtrVectorTy();
         });
}

// A function of the C library by its name and type, of which nothing better is known.
bool is_other_library_function(const llvm::Function& function) {
  const llvm::TargetLibraryInfoImpl library(llvm::Triple(function.getParent()->getTargetTriple()));
  llvm::LibFunc known{};
  return llvm::TargetLibraryInfo(library).getLibFunc(function, known);
}

}  // namespace

std::optional<Callee> library_callee(const llvm::Function& function) {
  const llvm::StringRef name = plain_name(function);
  if (llvm::is_contained(kComputes, name) && takes_numbers_only(function)) return Callee::kNothing;
  if (llvm::is_contained(kReads, name)) return Callee::kReads;
  if (llvm::is_contained(kUnrepeatable, name)) return Callee::kUnrepeatable;
  if (llvm::is_contained(kEnds, name)) return Callee::kEnds;
  if (matches(kThrowers, name)) return Callee::kThrows;
  if (refusal(name) != nullptr) return Callee::kRefused;
  if (is_other_library_function(function)) {
    return function.doesNotAccessMemory() ? Callee::kNothing : Callee::kRefused;
  }
  return std::nullopt;
}

llvm::StringRef library_refusal(const llvm::Function& function) {
  const Refusal* known = refusal(plain_name(function));
  return known != nullptr ? known->what : kUnknown;
}

bool calls_last_argument(const llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  return callee != nullptr && llvm::is_contained(kCallers, plain_name(*callee));
}

}  // namespace pawl::compiler::fase
