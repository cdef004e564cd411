// What compiled programs call instead of libc's functions: every byte that changes is marked, and
// hardly any other.
#include "track/store_functions.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <grp.h>
#include <iconv.h>
#include <libgen.h>
#include <mqueue.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <threads.h>
#include <uchar.h>
#include <unistd.h>

#include <clocale>
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "support/recorded_stores.h"
#include "support/temporary_directory.h"

// The wrappers have the types of what they wrap.
#define DECLARED(name) extern "C" decltype(::name) pawl_stored_##name
DECLARED(strdup);
DECLARED(strndup);
DECLARED(gcvt);
DECLARED(wcstol_l);
DECLARED(sendmmsg);
DECLARED(msgrcv);
DECLARED(mq_receive);
DECLARED(posix_spawn);
DECLARED(scandir64);
DECLARED(glob64);
DECLARED(thrd_sleep);
DECLARED(tss_create);
DECLARED(pthread_getaffinity_np);
DECLARED(pthread_getschedparam);
DECLARED(backtrace);
DECLARED(memcpy);
DECLARED(memmove);
DECLARED(mempcpy);
DECLARED(memset);
DECLARED(memccpy);
DECLARED(memfrob);
DECLARED(bzero);
DECLARED(explicit_bzero);
DECLARED(bcopy);
DECLARED(swab);
DECLARED(strcpy);
DECLARED(stpcpy);
DECLARED(strncpy);
DECLARED(stpncpy);
DECLARED(strcat);
DECLARED(strncat);
DECLARED(strxfrm);
DECLARED(strerror_r);
DECLARED(strfry);
DECLARED(strtok);
DECLARED(strtok_r);
DECLARED(strsep);
DECLARED(dirname);
DECLARED(__xpg_basename);
DECLARED(wmemcpy);
DECLARED(wmemset);
DECLARED(wcscpy);
DECLARED(wcpcpy);
DECLARED(wcsncpy);
DECLARED(wcscat);
DECLARED(wcsncat);
DECLARED(wcstok);
DECLARED(mbtowc);
DECLARED(wctomb);
DECLARED(mbrtowc);
DECLARED(wcrtomb);
DECLARED(mbrtoc16);
DECLARED(mbrtoc8);
DECLARED(c8rtomb);
DECLARED(mbstowcs);
DECLARED(wcstombs);
DECLARED(mbsrtowcs);
DECLARED(wcsrtombs);
DECLARED(iconv);
DECLARED(sprintf);
DECLARED(snprintf);
DECLARED(vsnprintf);
DECLARED(asprintf);
DECLARED(printf);
DECLARED(swprintf);
DECLARED(fread);
DECLARED(fgets);
DECLARED(fgetws);
DECLARED(getline);
DECLARED(getdelim);
DECLARED(fgetpos);
DECLARED(qsort);
DECLARED(qsort_r);
DECLARED(strtol);
DECLARED(strtoul);
DECLARED(strtoll);
DECLARED(strtoull);
DECLARED(strtof);
DECLARED(strtod);
DECLARED(strtold);
DECLARED(wcstol);
DECLARED(rand_r);
DECLARED(erand48);
DECLARED(drand48_r);
DECLARED(seed48_r);
DECLARED(lcong48_r);
DECLARED(mkstemp);
DECLARED(mkdtemp);
DECLARED(realpath);
DECLARED(getsubopt);
DECLARED(posix_memalign);
DECLARED(getloadavg);
DECLARED(lsearch);
DECLARED(tsearch);
DECLARED(insque);
DECLARED(remque);
DECLARED(sincos);
DECLARED(lgamma_r);
DECLARED(canonicalize);
DECLARED(setpayload);
DECLARED(setpayloadsig);
DECLARED(time);
DECLARED(gettimeofday);
DECLARED(clock_gettime);
DECLARED(ntp_adjtime);
extern "C" int pawl_stored_ntp_gettimex(ntptimeval* to);
DECLARED(clock_getres);
DECLARED(nanosleep);
DECLARED(times);
DECLARED(gmtime_r);
DECLARED(localtime_r);
DECLARED(asctime_r);
DECLARED(ctime_r);
DECLARED(mktime);
DECLARED(strptime);
DECLARED(strftime);
DECLARED(wcsftime);
DECLARED(read);
DECLARED(pread);
DECLARED(pread64);
DECLARED(readv);
DECLARED(preadv);
DECLARED(preadv2);
DECLARED(recv);
DECLARED(recvfrom);
DECLARED(recvmsg);
DECLARED(recvmmsg);
DECLARED(accept);
DECLARED(getsockname);
DECLARED(getpeername);
DECLARED(getsockopt);
DECLARED(socketpair);
DECLARED(pipe);
DECLARED(pipe2);
DECLARED(poll);
DECLARED(ppoll);
DECLARED(select);
DECLARED(pselect);
DECLARED(epoll_wait);
DECLARED(getrandom);
DECLARED(getentropy);
DECLARED(eventfd_read);
DECLARED(ioctl);
DECLARED(fcntl);
DECLARED(stat);
DECLARED(lstat);
DECLARED(fstat);
DECLARED(fstatat);
DECLARED(statx);
DECLARED(statfs);
DECLARED(statvfs);
DECLARED(readlink);
DECLARED(readlinkat);
DECLARED(getcwd);
DECLARED(gethostname);
DECLARED(confstr);
DECLARED(uname);
DECLARED(sysinfo);
DECLARED(getrusage);
DECLARED(getrlimit);
DECLARED(sched_getaffinity);
DECLARED(getpwuid_r);
DECLARED(getpwent_r);
DECLARED(getgrent_r);
DECLARED(fgetpwent_r);
DECLARED(fgetgrent_r);
DECLARED(getresuid);
DECLARED(sigaction);
DECLARED(sigprocmask);
DECLARED(sigpending);
DECLARED(sigemptyset);
DECLARED(sigaddset);
DECLARED(inet_ntop);
DECLARED(inet_pton);
DECLARED(inet_aton);
DECLARED(ether_aton_r);
DECLARED(ether_ntoa_r);
DECLARED(dladdr1);
DECLARED(getaddrinfo);
DECLARED(getnameinfo);
DECLARED(regcomp);
DECLARED(regexec);
DECLARED(regerror);
DECLARED(pthread_mutex_init);
DECLARED(pthread_mutex_lock);
DECLARED(pthread_mutex_unlock);
DECLARED(pthread_rwlock_rdlock);
DECLARED(pthread_rwlock_unlock);
DECLARED(pthread_cond_signal);
DECLARED(pthread_spin_lock);
DECLARED(pthread_once);
DECLARED(pthread_create);
DECLARED(pthread_join);
DECLARED(pthread_key_create);
DECLARED(sem_init);
DECLARED(sem_post);
DECLARED(sem_wait);
DECLARED(sem_getvalue);
DECLARED(mtx_init);
DECLARED(mtx_lock);
extern "C" {
int pawl_stored___xpg_strerror_r(int, char*, size_t);
double pawl_stored_frexp(double, int*);
double pawl_stored_modf(double, double*);
long double pawl_stored_modfl(long double, long double*);
double pawl_stored_remquo(double, double, int*);
int pawl_stored___isoc99_sscanf(const char*, const char*, ...);
int pawl_stored___isoc99_fscanf(std::FILE*, const char*, ...);
int pawl_stored_sscanf(const char*, const char*, ...);
int pawl_stored___isoc99_swscanf(const wchar_t*, const wchar_t*, ...);
char* pawl_stored___strcpy_chk(char*, const char*, size_t);
void* pawl_stored___memcpy_chk(void*, const void*, size_t, size_t);
char* pawl_stored___strcat_chk(char*, const char*, size_t);
int pawl_stored___snprintf_chk(char*, size_t, int, size_t, const char*, ...);
int pawl_stored___sprintf_chk(char*, int, size_t, const char*, ...);
ssize_t pawl_stored___read_chk(int, void*, size_t, size_t);
char* pawl_stored___fgets_chk(char*, size_t, int, std::FILE*);
size_t pawl_stored___fread_chk(void*, size_t, size_t, size_t, std::FILE*);
}

// All are there.
#define PAWL_STORE_FUNCTION(name) extern "C" void name_of_##name() __asm__("pawl_stored_" #name);
#include "track/store_functions.def"
#undef PAWL_STORE_FUNCTION

namespace pawl {
namespace {

constexpr std::size_t kBytes = 32768;
// Of structures, padding and fields that stay.
constexpr std::size_t kLoose = 400;

class StoreFunctions : public testing::Test {
 protected:
  using Step = std::function<void(char*)>;

  // What act() changes is marked, and of other bytes at most `slack`.  Once for each of two
  // fillings, so that each byte changes at least once.
  void check(const Step& prepare, const Step& act, std::size_t slack = 0) {
    std::set<std::size_t> changed;
    std::set<std::size_t> marked;
    for (const char filling : {'\xa5', '\x5a'}) {
      std::memset(b_, filling, kBytes);
      prepare(b_);
      const std::string before(b_, kBytes);
      test::recorded_stores.clear();
      errno = 4711;
      act(b_);
      const std::set<std::size_t> marked_now = test::recorded_in(memory_);
      for (std::size_t i = 0; i < kBytes; ++i) {
        if (b_[i] == before[i]) continue;
        changed.insert(i);
        EXPECT_TRUE(marked_now.contains(i)) << "byte " << i << " is not marked";
      }
      marked.insert(marked_now.begin(), marked_now.end());
    }
    EXPECT_FALSE(changed.empty()) << "nothing was written";
    std::size_t more = 0;
    for (const std::size_t offset : marked) more += changed.contains(offset) ? 0 : 1;
    EXPECT_LE(more, slack) << "marked and not changed; " << changed.size() << " were changed";
  }
  void check(const Step& act, std::size_t slack = 0) {
    check([](char*) {}, act, slack);
  }
  // Nothing is changed or marked.
  void check_nothing(const Step& act) {
    const std::string before(b_, kBytes);
    test::recorded_stores.clear();
    act(b_);
    EXPECT_EQ(std::string(b_, kBytes), before);
    EXPECT_TRUE(test::recorded_in(memory_).empty());
  }

  std::string file_with(const std::string& content) {
    const std::string path = directory_ / "file";
    test::write_file(path, content);
    return path;
  }
  std::FILE* stream_of(const std::string& content) {
    return std::fopen(file_with(content).c_str(), "r");
  }

  test::TemporaryDirectory directory_;
  test::RegionMemory memory_{kBytes};
  char* const b_ = memory_.start();
};

template <class Object>
Object* as(char* at) {
  return reinterpret_cast<Object*>(at);
}
// A format that no compiler looks at.
void va_list_print(char* to, std::size_t size, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)pawl_stored_vsnprintf(to, size, format, arguments);
  va_end(arguments);
}
wchar_t* wide(char* at) { return as<wchar_t>(at); }

// clang-format off: a line a function.
#define CHECK(...) do { SCOPED_TRACE(#__VA_ARGS__); check([&]([[maybe_unused]] char* b) { __VA_ARGS__; }); } while (false)
#define CHECK_LOOSE(...) do { SCOPED_TRACE(#__VA_ARGS__); check([&]([[maybe_unused]] char* b) { __VA_ARGS__; }, kLoose); } while (false)
#define CHECK_AFTER(prepare, ...) do { SCOPED_TRACE(#__VA_ARGS__); check([&]([[maybe_unused]] char* b) { prepare; }, [&]([[maybe_unused]] char* b) { __VA_ARGS__; }); } while (false)
#define CHECK_LOOSE_AFTER(prepare, ...) do { SCOPED_TRACE(#__VA_ARGS__); check([&]([[maybe_unused]] char* b) { prepare; }, [&]([[maybe_unused]] char* b) { __VA_ARGS__; }, kLoose); } while (false)
#define CHECK_NOTHING(...) do { SCOPED_TRACE(#__VA_ARGS__); check_nothing([&]([[maybe_unused]] char* b) { __VA_ARGS__; }); } while (false)

TEST_F(StoreFunctions, OnStrings) {
  CHECK(pawl_stored_memcpy(b + 61, "pawl and ratchet", 16));
  CHECK(pawl_stored_memmove(b + 61, "pawl and ratchet", 16));
  CHECK(pawl_stored_mempcpy(b + 61, "pawl and ratchet", 16));
  CHECK(pawl_stored_memset(b + 4000, 'x', 5000));
  CHECK(pawl_stored___memcpy_chk(b + 61, "pawl and ratchet", 16, 100));
  CHECK_NOTHING(pawl_stored_memcpy(b, "x", 0));
  CHECK(pawl_stored_memccpy(b + 3, "pawl and ratchet", ' ', 16));
  CHECK(pawl_stored_memccpy(b + 3, "pawl and ratchet", 'X', 16));
  CHECK(pawl_stored_memfrob(b + 3, 20));
  CHECK(pawl_stored_bzero(b + 3, 20));
  CHECK(pawl_stored_explicit_bzero(b + 3, 20));
  CHECK(pawl_stored_bcopy("pawl and ratchet", b + 3, 12));
  CHECK(pawl_stored_swab("pawl and ratchet", b + 3, 11));
  CHECK(pawl_stored_strcpy(b + 5, "pawl"));
  CHECK(pawl_stored___strcpy_chk(b + 5, "pawl", 100));
  CHECK(pawl_stored_stpcpy(b + 5, "pawl"));
  CHECK(pawl_stored_strncpy(b + 5, "pawl", 100));
  CHECK(pawl_stored_strncpy(b + 5, "pawl", 3));
  CHECK(pawl_stored_stpncpy(b + 5, "pawl", 100));
  CHECK_AFTER(std::strcpy(b, "one "), pawl_stored_strcat(b, "two"));
  CHECK_AFTER(std::strcpy(b, "one "), pawl_stored___strcat_chk(b, "two", 100));
  CHECK_AFTER(std::strcpy(b, "one "), pawl_stored_strncat(b, "two and three", 3));
  CHECK(pawl_stored_strxfrm(b, "pawl", 100));
  CHECK(pawl_stored_strerror_r(4711, b, 100));
  CHECK_NOTHING(pawl_stored_strerror_r(ENOENT, b, 100));  // GNU's returns a constant
  CHECK(pawl_stored___xpg_strerror_r(ENOENT, b, 100));
  CHECK(pawl_stored___xpg_strerror_r(ENOENT, b, 5));
  check([](char* b) { std::strcpy(b, "abcdefghijklmnopqrstuvwxyz"); },
        [](char* b) { pawl_stored_strfry(b); }, 27);
  CHECK_AFTER(std::strcpy(b, "one,two"), pawl_stored_strtok(b, ","));
  CHECK_LOOSE_AFTER(std::strcpy(b, "one,two"), pawl_stored_strtok_r(b, ",", as<char*>(b + 64)));
  CHECK_LOOSE_AFTER(std::strcpy(b, "one,two"); *as<char*>(b) += 0; *as<char*>(b + 64) = 0; *reinterpret_cast<char**>(b + 64) = b,
                    pawl_stored_strsep(reinterpret_cast<char**>(b + 64), ","));
  check([](char* b) { std::strcpy(b, "/usr/lib/"); }, [](char* b) { pawl_stored_dirname(b); }, 10);
  check([](char* b) { std::strcpy(b, "/usr/lib//"); }, [](char* b) { pawl_stored___xpg_basename(b); }, 10);
}

TEST_F(StoreFunctions, OnWideStringsAndConversions) {
  // Zeros in wide characters are of both fillings different.
  CHECK(pawl_stored_wmemcpy(wide(b + 4), L"pawl", 4));
  CHECK(pawl_stored_wmemset(wide(b + 4), L'x', 40));
  CHECK(pawl_stored_wcscpy(wide(b + 4), L"pawl"));
  CHECK(pawl_stored_wcpcpy(wide(b + 4), L"pawl"));
  CHECK(pawl_stored_wcsncpy(wide(b + 4), L"pawl", 20));
  CHECK_LOOSE_AFTER(std::wcscpy(wide(b), L"one "), pawl_stored_wcscat(wide(b), L"two"));
  CHECK_LOOSE_AFTER(std::wcscpy(wide(b), L"one "), pawl_stored_wcsncat(wide(b), L"two", 2));
  CHECK_LOOSE_AFTER(std::wcscpy(wide(b), L"one,two"), pawl_stored_wcstok(wide(b), L",", as<wchar_t*>(b + 64)));
  CHECK(pawl_stored_mbtowc(wide(b), "x", 1));
  CHECK(pawl_stored_wctomb(b, L'x'));
  CHECK(pawl_stored_mbrtowc(wide(b), "x", 1, nullptr));
  CHECK(pawl_stored_wcrtomb(b, L'x', nullptr));
  CHECK(pawl_stored_mbrtoc16(as<char16_t>(b), "x", 1, nullptr));
  CHECK(pawl_stored_mbrtoc8(as<char8_t>(b), "x", 1, nullptr));
  CHECK(pawl_stored_c8rtomb(b, u8'x', nullptr));
  CHECK(pawl_stored_mbstowcs(wide(b), "pawl", 100));
  CHECK(pawl_stored_mbstowcs(wide(b), "pawl", 2));
  CHECK(pawl_stored_wcstombs(b, L"pawl", 100));
  const char* narrow = nullptr;
  CHECK(narrow = "pawl"; pawl_stored_mbsrtowcs(wide(b), &narrow, 100, nullptr));
  const wchar_t* broad = nullptr;
  CHECK(broad = L"pawl"; pawl_stored_wcsrtombs(b, &broad, 100, nullptr));
  const iconv_t conversion = iconv_open("UTF-16LE", "UTF-8");
  CHECK_LOOSE_AFTER({ *as<char*>(b + 64) = 0; *reinterpret_cast<char**>(b + 64) = b + 128; *as<size_t>(b + 72) = 30; },
                    char text[] = "pawl"; char* from = text; size_t left = 4;
                    pawl_stored_iconv(conversion, &from, &left, reinterpret_cast<char**>(b + 64), as<size_t>(b + 72)));
  iconv_close(conversion);
}

TEST_F(StoreFunctions, ThatPrint) {
  CHECK(pawl_stored_sprintf(b + 7, "%d and %s", 4711, "pawl"));
  CHECK(pawl_stored___sprintf_chk(b + 7, 1, 100, "%d and %s", 4711, "pawl"));
  CHECK(pawl_stored_snprintf(b + 7, 100, "%d and %s", 4711, "pawl"));
  CHECK(pawl_stored_snprintf(b + 7, 5, "%d and %s", 4711, "pawl"));
  CHECK(pawl_stored___snprintf_chk(b + 7, 5, 1, 5, "%d and %s", 4711, "pawl"));
  CHECK_NOTHING(pawl_stored_snprintf(nullptr, 0, "%d", 1));
  CHECK(pawl_stored_swprintf(wide(b), 100, L"%d and %s", 4711, "pawl"));
  char* made = nullptr;
  check([](char*) {}, [](char* b) { std::free((pawl_stored_asprintf(reinterpret_cast<char**>(b + 8), "%d", 1), *reinterpret_cast<char**>(b + 8))); }, 8);
  std::free(made);
  // %n, behind arguments of every kind.
  int count = 0;
  check([](char*) {}, [&](char* b) {
    pawl_stored_snprintf(b + 64, 200, "%d %ld %lld %s %c %f %Lf %p %*d%n %2.*f%hhn", 1, 2L, 3LL, "four", '5', 6.0,
                         7.0L, static_cast<void*>(&count), 8, 9, as<int>(b), 3, 10.0, as<signed char>(b + 16));
  }, 16);
  const char* const positions = "%2$s%1$n";
  check([](char*) {}, [&](char* b) { va_list_print(b + 64, 200, positions, as<int>(b + 8), "text"); }, 8);
  check([](char*) {}, [&](char* b) { pawl_stored_swprintf(wide(b + 64), 200, L"%ls%n", L"text", as<int>(b + 8)); }, 8);
}

TEST_F(StoreFunctions, ThatScan) {
  // Unions of what two fillings change.
  CHECK_LOOSE(pawl_stored___isoc99_sscanf("12 -34 5.5 word", "%d %ld %lf %s", as<int>(b), as<long>(b + 8), as<double>(b + 16), b + 24));
  CHECK(pawl_stored___isoc99_sscanf("word other", "%s %*s", b + 24));
  CHECK(pawl_stored___isoc99_sscanf("abcdef", "%3s%2c", b + 24, b + 40));
  CHECK(pawl_stored___isoc99_sscanf("abc]def", "%[]a-c]%n", b + 24, as<int>(b + 64)));
  CHECK(pawl_stored___isoc99_sscanf("77", "%hhd", as<signed char>(b)));
  CHECK(pawl_stored___isoc99_sscanf("30000", "%hd", as<short>(b)));
  CHECK(pawl_stored___isoc99_sscanf("1.5", "%Lf", as<long double>(b)); std::memset(b + 10, 0, 6); test::recorded_stores.push_back({b + 10, 6}));
  CHECK(pawl_stored___isoc99_sscanf("12 13", "%2$d %1$d", as<int>(b), as<int>(b + 32)));
  CHECK(pawl_stored___isoc99_sscanf("100%12", "%*d%%%d", as<int>(b)));
  CHECK(pawl_stored___isoc99_sscanf("100%12", "%*d%5%%d", as<int>(b)));
  CHECK(pawl_stored___isoc99_sscanf("pawl", "%ls", wide(b)));
  check([](char*) {}, [](char* b) { pawl_stored___isoc99_sscanf("allocated", "%ms", reinterpret_cast<char**>(b)); std::free(*reinterpret_cast<char**>(b)); }, 8);
  check([](char*) {}, [](char* b) { pawl_stored_sscanf("allocated", "%as", reinterpret_cast<char**>(b)); std::free(*reinterpret_cast<char**>(b)); }, 8);
  CHECK(pawl_stored___isoc99_sscanf("0x1p4", "%a", as<float>(b)); as<float>(b)[0] = 3.14159f);
  CHECK(pawl_stored___isoc99_swscanf(L"12 word", L"%d %s", as<int>(b), b + 24));
  // It stops: what follows is not written.
  CHECK(pawl_stored___isoc99_sscanf("-1", "%d %s", as<int>(b), b + 24));
  CHECK_NOTHING(pawl_stored___isoc99_sscanf("", "%s", b));
  std::FILE* const stream = stream_of("1\n2\n3\n");
  CHECK(pawl_stored___isoc99_fscanf(stream, "%d", as<int>(b)));
  std::fclose(stream);
}

TEST_F(StoreFunctions, ThatReadStreams) {
  std::FILE* stream = stream_of(std::string(1000, 'x') + "line\nlast");
  CHECK(std::rewind(stream); EXPECT_EQ(pawl_stored_fread(b + 10, 1, 900, stream), 900u));
  check([](char*) {}, [&](char* b) { std::rewind(stream); EXPECT_EQ(pawl_stored_fread(b + 10, 600, 3, stream), 1u); }, 600);
  CHECK(std::rewind(stream); pawl_stored___fread_chk(b + 10, 5000, 1, 900, stream));
  CHECK(std::fseek(stream, 990, SEEK_SET); pawl_stored_fgets(b + 3, 500, stream));
  CHECK(std::fseek(stream, 990, SEEK_SET); pawl_stored_fgets(b + 3, 5, stream));
  CHECK(std::fseek(stream, 990, SEEK_SET); pawl_stored___fgets_chk(b + 3, 500, 500, stream));
  // At the end of the file, and of lines with zeros in them, it cannot be known.
  check([](char*) {}, [&](char* b) { std::fseek(stream, -4, SEEK_END); pawl_stored_fgets(b + 3, 200, stream); }, 200);
  check([](char*) {}, [&](char* b) { std::fseek(stream, 990, SEEK_SET); pawl_stored_getline(reinterpret_cast<char**>(std::memset(b, 0, 16)), as<size_t>(b + 8), stream); std::free(*reinterpret_cast<char**>(b)); test::recorded_stores.push_back({b, 16}); }, 0);
  check([](char*) {}, [&](char* b) { pawl_stored_fgetpos(stream, as<fpos_t>(b)); }, sizeof(fpos_t));
  std::fclose(stream);
  stream = stream_of(std::string("a\0b\nc", 5));
  check([](char*) {}, [&](char* b) { std::rewind(stream); pawl_stored_fgets(b, 100, stream); }, 100);
  std::fclose(stream);
  stream = stream_of("wide line\nnext");
  CHECK(pawl_stored_fgetws(wide(b), 5, stream));
  std::fclose(stream);
}

int compare_ints(const void* one, const void* other) {
  const int left = *static_cast<const int*>(one);
  const int right = *static_cast<const int*>(other);
  return left < right ? -1 : left > right;
}

TEST_F(StoreFunctions, OfTheStandardLibrary) {
  const auto numbers = [](char* b) { for (int i = 0; i < 20; ++i) as<int>(b)[i] = -i * 0x1010101; };
  check(numbers, [](char* b) { pawl_stored_qsort(b, 20, 4, compare_ints); }, 80);
  check(numbers, [](char* b) { pawl_stored_qsort_r(b, 20, 4, [](const void* x, const void* y, void*) { return compare_ints(x, y); }, nullptr); }, 80);
  check(numbers, [](char* b) {
    try {
      pawl_stored_qsort(b, 20, 4, [](const void* x, const void* y) {
        static int calls = 0;
        if (++calls % 30 == 0) throw 1;
        return compare_ints(x, y);
      });
    } catch (int) {
      b[0] = static_cast<char>(b[0] + 1);
    }
  }, 80);
  const auto ends_at = [&](auto function, const char* text, auto... more) {
    check([](char*) {}, [&](char* b) { (void)function(text, reinterpret_cast<char**>(b + 8), more...); }, 8);
  };
  ends_at(pawl_stored_strtol, "12x", 10);
  ends_at(pawl_stored_strtoul, "12x", 10);
  ends_at(pawl_stored_strtoll, "12x", 10);
  ends_at(pawl_stored_strtoull, "12x", 10);
  ends_at(pawl_stored_strtof, "12x");
  ends_at(pawl_stored_strtod, "12x");
  ends_at(pawl_stored_strtold, "12x");
  check([](char*) {}, [](char* b) { (void)pawl_stored_wcstol(L"12x", as<wchar_t*>(b), 10); }, 8);
  CHECK(pawl_stored_rand_r(as<unsigned>(b)));
  check([](char*) {}, [](char* b) { pawl_stored_erand48(as<unsigned short>(b)); }, 6);
  CHECK_LOOSE(pawl_stored_drand48_r(as<drand48_data>(b), as<double>(b + 128)));
  unsigned short seeds[7] = {1, 2, 3, 4, 5, 6, 7};
  CHECK_LOOSE(pawl_stored_seed48_r(seeds, as<drand48_data>(b)));
  CHECK_LOOSE(pawl_stored_lcong48_r(seeds, as<drand48_data>(b)));
  check([&](char* b) { std::strcpy(b, (directory_ / "nameXXXXXX").c_str()); }, [](char* b) { close(pawl_stored_mkstemp(b)); }, kLoose);
  check([&](char* b) { std::strcpy(b, (directory_ / "nameXXXXXX").c_str()); }, [](char* b) { pawl_stored_mkdtemp(b); }, kLoose);
  CHECK(pawl_stored_realpath("/usr/../usr/bin", b));
  check([](char* b) { std::strcpy(b, "one=1,two"); *reinterpret_cast<char**>(b + 64) = b; }, [](char* b) {
    char one[] = "one";
    char* const tokens[] = {one, nullptr};
    EXPECT_EQ(pawl_stored_getsubopt(reinterpret_cast<char**>(b + 64), tokens, reinterpret_cast<char**>(b + 72)), 0);
  }, kLoose);
  check([](char*) {}, [](char* b) { pawl_stored_posix_memalign(reinterpret_cast<void**>(b), 64, 64); std::free(*reinterpret_cast<void**>(b)); }, 8);
  CHECK_LOOSE(pawl_stored_getloadavg(as<double>(b), 3));
  check([](char* b) { *as<size_t>(b + 512) = 3; for (int i = 0; i < 3; ++i) as<int>(b)[i] = i; }, [](char* b) {
    const int key = 77;
    pawl_stored_lsearch(&key, b, as<size_t>(b + 512), 4, compare_ints);
  }, 8);
  check([](char* b) { *as<void*>(b) = nullptr; }, [](char* b) { pawl_stored_tsearch("key", as<void*>(b), compare_ints); std::free(*as<void*>(b)); }, 8);
  struct Element { Element* next; Element* previous; };
  check([](char* b) { *as<Element>(b) = {nullptr, nullptr}; pawl_stored_insque(b + 64, b); }, [](char* b) { pawl_stored_insque(b + 128, b); }, 48);
  check([](char* b) { *as<Element>(b) = {nullptr, nullptr}; insque(b + 64, b); insque(b + 128, b); }, [](char* b) { pawl_stored_remque(b + 128); }, 48);
  CHECK(pawl_stored_frexp(8e200, as<int>(b)));
  CHECK(pawl_stored_modf(1234567.8765e18, as<double>(b)));
  CHECK_LOOSE(pawl_stored_modfl(1.25L, as<long double>(b)));
  CHECK_LOOSE(pawl_stored_remquo(100, 7, as<int>(b)));
  CHECK(pawl_stored_sincos(1.2, as<double>(b), as<double>(b + 64)));
  CHECK(pawl_stored_lgamma_r(-1.5, as<int>(b)));
  const double half = 0.5;
  CHECK(pawl_stored_canonicalize(as<double>(b), &half));
  CHECK(pawl_stored_setpayload(as<double>(b), 17));
  CHECK(pawl_stored_setpayloadsig(as<double>(b), 17));
}

TEST_F(StoreFunctions, OfTime) {
  const std::time_t now = 1'700'000'000;
  tm fields{};
  gmtime_r(&now, &fields);
  CHECK(pawl_stored_time(as<time_t>(b)));
  CHECK_LOOSE(pawl_stored_gettimeofday(as<timeval>(b), b + 64));
  CHECK(pawl_stored_clock_gettime(CLOCK_REALTIME, as<timespec>(b)));
  CHECK_LOOSE(pawl_stored_ntp_gettimex(as<ntptimeval>(b)));
  CHECK_LOOSE_AFTER(as<timex>(b)->modes = 0, pawl_stored_ntp_adjtime(as<timex>(b)));
  CHECK(pawl_stored_clock_getres(CLOCK_REALTIME, as<timespec>(b)));
  CHECK(pawl_stored_times(as<tms>(b)));
  CHECK_LOOSE(pawl_stored_gmtime_r(&now, as<tm>(b)));
  CHECK_LOOSE(pawl_stored_localtime_r(&now, as<tm>(b)));
  CHECK(pawl_stored_asctime_r(&fields, b));
  CHECK(pawl_stored_ctime_r(&now, b));
  CHECK_LOOSE_AFTER(*as<tm>(b) = fields; as<tm>(b)->tm_mon = 100, pawl_stored_mktime(as<tm>(b)));
  CHECK_LOOSE(pawl_stored_strptime("2024-02-03", "%Y-%m-%d", as<tm>(b)));
  CHECK(pawl_stored_strftime(b, 100, "%Y-%m-%d", &fields));
  check([](char*) {}, [&](char* b) { EXPECT_EQ(pawl_stored_strftime(b, 5, "%Y-%m-%d", &fields), 0u); }, 5);
  CHECK(pawl_stored_wcsftime(wide(b), 100, L"%Y-%m-%d", &fields));
}

TEST_F(StoreFunctions, OfDescriptors) {
  const int file = open(file_with(std::string(5000, 'x')).c_str(), O_RDWR);
  CHECK(lseek(file, 0, SEEK_SET); EXPECT_EQ(pawl_stored_read(file, b + 1, 100), 100));
  CHECK(lseek(file, 4990, SEEK_SET); EXPECT_EQ(pawl_stored_read(file, b + 1, 100), 10));
  CHECK(lseek(file, 0, SEEK_SET); EXPECT_EQ(pawl_stored___read_chk(file, b + 1, 100, 100), 100));
  CHECK_NOTHING(EXPECT_EQ(pawl_stored_read(file, b, 0), 0));
  CHECK_NOTHING(EXPECT_EQ(pawl_stored_read(-1, b, 100), -1));
  CHECK(pawl_stored_pread(file, b + 1, 100, 4950));
  CHECK(pawl_stored_pread64(file, b + 1, 100, 4950));
  iovec vectors[3] = {{b_ + 10, 20}, {b_ + 100, 7}, {b_ + 200, 100}};
  CHECK(lseek(file, 4965, SEEK_SET); EXPECT_EQ(pawl_stored_readv(file, vectors, 3), 35));
  CHECK(EXPECT_EQ(pawl_stored_preadv(file, vectors, 3, 4965), 35));
  CHECK(EXPECT_EQ(pawl_stored_preadv2(file, vectors, 3, 4965, 0), 35));
  CHECK_LOOSE(pawl_stored_getrandom(b, 300, 0));
  CHECK_LOOSE(pawl_stored_getentropy(b, 200));
  const int event = eventfd(5, EFD_SEMAPHORE);
  CHECK(pawl_stored_eventfd_read(event, as<eventfd_t>(b)));
  close(event);
  for (int (*const make)(int*) : {+[](int* to) { return pawl_stored_pipe(to); }, +[](int* to) { return pawl_stored_pipe2(to, O_CLOEXEC); }}) {
    CHECK(make(as<int>(b)); close(as<int>(b)[0]); close(as<int>(b)[1]));
  }
  CHECK(pawl_stored_ioctl(file, FIONREAD, b); test::recorded_stores.assign({{b, 4}}));
  check([](char*) {}, [&](char* b) { pawl_stored_ioctl(file, FIONREAD, b); }, 256);
  check([](char* b) { *as<struct flock>(b) = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1, .l_pid = 0}; },
        [&](char* b) { pawl_stored_fcntl(file, F_GETLK, b); }, sizeof(struct flock));
  CHECK_NOTHING(pawl_stored_fcntl(file, F_GETFL, b));
  CHECK_LOOSE_AFTER(*as<pollfd>(b) = (pollfd{file, POLLIN, 0}), pawl_stored_poll(as<pollfd>(b), 1, 0));
  CHECK_LOOSE_AFTER(*as<pollfd>(b) = (pollfd{file, POLLIN, 0}), pawl_stored_ppoll(as<pollfd>(b), 1, nullptr, nullptr));
  CHECK_LOOSE_AFTER(FD_ZERO(as<fd_set>(b)); FD_SET(file, as<fd_set>(b)); FD_SET(0, as<fd_set>(b)); timeval soon{}; *as<timeval>(b + 256) = soon;
                    FD_ZERO(as<fd_set>(b + 512)); FD_SET(file, as<fd_set>(b + 512)),
                    pawl_stored_select(file + 1, nullptr, nullptr, as<fd_set>(b), as<timeval>(b + 256)));
  CHECK_LOOSE_AFTER(FD_ZERO(as<fd_set>(b)); FD_SET(file, as<fd_set>(b)), const timespec soon{}; pawl_stored_pselect(file + 1, nullptr, nullptr, as<fd_set>(b), &soon, nullptr));
  close(file);
}

TEST_F(StoreFunctions, OfSockets) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  const auto send = [&] { ASSERT_EQ(write(pair[0], "0123456789", 10), 10); };
  CHECK(send(); pawl_stored_recv(pair[1], b + 1, 1000, 0));
  CHECK(send(); pawl_stored_recv(pair[1], b + 1, 4, MSG_TRUNC));
  check([&](char* b) { *as<socklen_t>(b + 512) = 100; send(); },
        [&](char* b) { pawl_stored_recvfrom(pair[1], b, 1000, 0, as<sockaddr>(b + 256), as<socklen_t>(b + 512)); }, 110);
  check([&](char* b) {
    auto* const message = as<msghdr>(b + 512);
    auto* const vectors = as<iovec>(b + 1024);
    *message = {};
    vectors[0] = {b, 4};
    vectors[1] = {b + 64, 100};
    message->msg_iov = vectors;
    message->msg_iovlen = 2;
    message->msg_flags = 77;
    send();
  }, [&](char* b) { EXPECT_EQ(pawl_stored_recvmsg(pair[1], as<msghdr>(b + 512), 0), 10); }, sizeof(msghdr));
  check([&](char* b) {
    auto* const messages = as<mmsghdr>(b + 512);
    auto* const vectors = as<iovec>(b + 1024);
    for (int i = 0; i < 2; ++i) {
      vectors[i] = {b + 64 * i, 100};
      messages[i] = {};
      messages[i].msg_hdr.msg_iov = vectors + i;
      messages[i].msg_hdr.msg_iovlen = 1;
      send();
    }
  }, [&](char* b) { EXPECT_EQ(pawl_stored_recvmmsg(pair[1], as<mmsghdr>(b + 512), 2, 0, nullptr), 2); }, 2 * sizeof(mmsghdr));
  CHECK_LOOSE_AFTER(*as<socklen_t>(b + 512) = 100, pawl_stored_getsockname(pair[1], as<sockaddr>(b), as<socklen_t>(b + 512)));
  CHECK_LOOSE_AFTER(*as<socklen_t>(b + 512) = 100, pawl_stored_getpeername(pair[1], as<sockaddr>(b), as<socklen_t>(b + 512)));
  CHECK_LOOSE_AFTER(*as<socklen_t>(b + 512) = 4, pawl_stored_getsockopt(pair[1], SOL_SOCKET, SO_TYPE, b, as<socklen_t>(b + 512)));
  CHECK(pawl_stored_socketpair(AF_UNIX, SOCK_STREAM, 0, as<int>(b)); close(as<int>(b)[0]); close(as<int>(b)[1]));
  const int epoll = epoll_create1(0);
  epoll_event wanted{};
  wanted.events = EPOLLOUT;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &wanted), 0);
  CHECK(EXPECT_EQ(pawl_stored_epoll_wait(epoll, as<epoll_event>(b), 10, 0), 1));
  close(epoll);
  close(pair[0]);
  close(pair[1]);

  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 10), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  CHECK_LOOSE_AFTER(*as<socklen_t>(b + 512) = 100,
                    const int client = socket(AF_INET, SOCK_STREAM, 0); ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), length), 0);
                    const int accepted = pawl_stored_accept(listener, as<sockaddr>(b), as<socklen_t>(b + 512)); EXPECT_GE(accepted, 0); close(accepted); close(client));
  close(listener);
}

TEST_F(StoreFunctions, OfTheSystem) {
  const std::string path = file_with("x");
  const int file = open(path.c_str(), O_RDONLY);
  CHECK_LOOSE(pawl_stored_stat(path.c_str(), as<struct stat>(b)));
  CHECK_LOOSE(pawl_stored_lstat(path.c_str(), as<struct stat>(b)));
  CHECK_LOOSE(pawl_stored_fstat(file, as<struct stat>(b)));
  CHECK_LOOSE(pawl_stored_fstatat(AT_FDCWD, path.c_str(), as<struct stat>(b), 0));
  CHECK_LOOSE(pawl_stored_statx(AT_FDCWD, path.c_str(), 0, STATX_ALL, as<struct statx>(b)));
  CHECK_LOOSE(pawl_stored_statfs(path.c_str(), as<struct statfs>(b)));
  CHECK_LOOSE(pawl_stored_statvfs(path.c_str(), as<struct statvfs>(b)));
  close(file);
  ASSERT_EQ(symlink("where it leads", (path + ".link").c_str()), 0);
  CHECK(pawl_stored_readlink((path + ".link").c_str(), b, 1000));
  CHECK(pawl_stored_readlinkat(AT_FDCWD, (path + ".link").c_str(), b, 5));
  CHECK(pawl_stored_getcwd(b, 4096));
  CHECK(pawl_stored_gethostname(b, 500));
  CHECK(pawl_stored_confstr(_CS_PATH, b, 500));
  check([](char*) {}, [](char* b) { pawl_stored_uname(as<utsname>(b)); }, 0);
  CHECK_LOOSE(pawl_stored_sysinfo(as<struct sysinfo>(b)));
  CHECK_LOOSE(pawl_stored_getrusage(RUSAGE_SELF, as<rusage>(b)));
  CHECK_LOOSE(pawl_stored_getrlimit(RLIMIT_NOFILE, as<rlimit>(b)));
  CHECK_LOOSE(pawl_stored_sched_getaffinity(0, sizeof(cpu_set_t), as<cpu_set_t>(b)));
  check([](char*) {}, [](char* b) { pawl_stored_getpwuid_r(0, as<passwd>(b), b + 1024, 2000, reinterpret_cast<passwd**>(b + 512)); }, 3000);
  check([](char*) {}, [](char* b) { setpwent(); pawl_stored_getpwent_r(as<passwd>(b), b + 1024, 2000, reinterpret_cast<passwd**>(b + 512)); endpwent(); }, 3000);
  check([](char*) {}, [](char* b) { setgrent(); pawl_stored_getgrent_r(as<group>(b), b + 1024, 2000, reinterpret_cast<group**>(b + 512)); endgrent(); }, 3000);
  FILE* const users = std::fopen("/etc/passwd", "r");
  FILE* const groups = std::fopen("/etc/group", "r");
  check([](char*) {}, [&](char* b) { pawl_stored_fgetpwent_r(users, as<passwd>(b), b + 1024, 2000, reinterpret_cast<passwd**>(b + 512)); }, 3000);
  check([](char*) {}, [&](char* b) { pawl_stored_fgetgrent_r(groups, as<group>(b), b + 1024, 2000, reinterpret_cast<group**>(b + 512)); }, 3000);
  std::fclose(users);
  std::fclose(groups);
  CHECK_LOOSE(pawl_stored_dladdr1(reinterpret_cast<const void*>(&std::fopen), as<Dl_info>(b), reinterpret_cast<void**>(b + 512), RTLD_DL_LINKMAP));
  CHECK(pawl_stored_getresuid(as<uid_t>(b), as<uid_t>(b + 64), as<uid_t>(b + 128)));
  CHECK_LOOSE(pawl_stored_sigaction(SIGUSR1, nullptr, as<struct sigaction>(b)));
  CHECK_LOOSE(pawl_stored_sigprocmask(SIG_BLOCK, nullptr, as<sigset_t>(b)));
  CHECK_LOOSE(pawl_stored_sigpending(as<sigset_t>(b)));
  CHECK_LOOSE(pawl_stored_sigemptyset(as<sigset_t>(b)));
  CHECK_LOOSE_AFTER(sigemptyset(as<sigset_t>(b)), pawl_stored_sigaddset(as<sigset_t>(b), SIGUSR1));
  const in_addr loopback{htonl(INADDR_LOOPBACK)};
  CHECK(pawl_stored_inet_ntop(AF_INET, &loopback, b, 100));
  CHECK(pawl_stored_inet_pton(AF_INET, "1.2.3.4", b));
  CHECK(pawl_stored_inet_pton(AF_INET6, "::1", b));
  CHECK(pawl_stored_inet_aton("1.2.3.4", as<in_addr>(b)));
  ether_addr station{};
  CHECK(pawl_stored_ether_aton_r("1:2:3:4:5:6", as<ether_addr>(b)));
  CHECK(pawl_stored_ether_ntoa_r(&station, b));
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  check([](char*) {}, [&](char* b) { ASSERT_EQ(pawl_stored_getaddrinfo("127.0.0.1", nullptr, &hints, reinterpret_cast<addrinfo**>(b)), 0); freeaddrinfo(*reinterpret_cast<addrinfo**>(b)); }, 8);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(12345);
  CHECK(pawl_stored_getnameinfo(reinterpret_cast<sockaddr*>(&address), sizeof address, b, 100, b + 256, 100, NI_NUMERICHOST | NI_NUMERICSERV));
  regex_t pattern;
  check([](char*) {}, [](char* b) { ASSERT_EQ(pawl_stored_regcomp(as<regex_t>(b), "a+", 0), 0); regfree(as<regex_t>(b)); test::recorded_stores.push_back({b, sizeof(regex_t)}); }, kLoose);
  ASSERT_EQ(regcomp(&pattern, "a\\(b\\)", 0), 0);
  CHECK(pawl_stored_regexec(&pattern, "xxab", 3, as<regmatch_t>(b), 0));
  CHECK(pawl_stored_regerror(REG_EPAREN, &pattern, b, 100));
  regfree(&pattern);
}

// Objects of threads are marked before the call, too: another thread may commit at once.
TEST_F(StoreFunctions, OfThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer remembers locks that are overwritten here";
#endif
  CHECK_LOOSE(pawl_stored_pthread_mutex_init(as<pthread_mutex_t>(b), nullptr));
  CHECK_LOOSE_AFTER(pthread_mutex_init(as<pthread_mutex_t>(b), nullptr), pawl_stored_pthread_mutex_lock(as<pthread_mutex_t>(b)); EXPECT_EQ(test::recorded_stores.size(), 2u));
  CHECK_LOOSE_AFTER(pthread_mutex_init(as<pthread_mutex_t>(b), nullptr); pthread_mutex_lock(as<pthread_mutex_t>(b)), pawl_stored_pthread_mutex_unlock(as<pthread_mutex_t>(b)); EXPECT_EQ(test::recorded_stores.size(), 2u));
  CHECK_LOOSE_AFTER(pthread_rwlock_init(as<pthread_rwlock_t>(b), nullptr), pawl_stored_pthread_rwlock_rdlock(as<pthread_rwlock_t>(b)));
  CHECK_LOOSE_AFTER(pthread_rwlock_init(as<pthread_rwlock_t>(b), nullptr); pthread_rwlock_rdlock(as<pthread_rwlock_t>(b)), pawl_stored_pthread_rwlock_unlock(as<pthread_rwlock_t>(b)));
  CHECK_LOOSE_AFTER(pthread_spin_init(as<pthread_spinlock_t>(b), 0), pawl_stored_pthread_spin_lock(as<pthread_spinlock_t>(b)));
  CHECK_LOOSE_AFTER(*as<pthread_once_t>(b) = PTHREAD_ONCE_INIT, pawl_stored_pthread_once(as<pthread_once_t>(b), [] {}));
  CHECK(pawl_stored_pthread_create(as<pthread_t>(b), nullptr, [](void*) -> void* { return nullptr; }, nullptr); pthread_join(*as<pthread_t>(b), nullptr));
  pthread_t thread{};
  check([&](char*) { pthread_create(&thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr); }, [&](char* b) { pawl_stored_pthread_join(thread, as<void*>(b)); });
  CHECK(pawl_stored_pthread_key_create(as<pthread_key_t>(b), nullptr); pthread_key_delete(*as<pthread_key_t>(b)));
  CHECK_LOOSE(pawl_stored_sem_init(as<sem_t>(b), 0, 3));
  CHECK_LOOSE_AFTER(sem_init(as<sem_t>(b), 0, 3), pawl_stored_sem_post(as<sem_t>(b)));
  CHECK_LOOSE_AFTER(sem_init(as<sem_t>(b), 0, 3), pawl_stored_sem_wait(as<sem_t>(b)));
  CHECK_LOOSE_AFTER(sem_init(as<sem_t>(b + 64), 0, 3), pawl_stored_sem_getvalue(as<sem_t>(b + 64), as<int>(b)));
  CHECK_LOOSE(pawl_stored_mtx_init(as<mtx_t>(b), mtx_plain));
  CHECK_LOOSE_AFTER(mtx_init(as<mtx_t>(b), mtx_plain), pawl_stored_mtx_lock(as<mtx_t>(b)));
}
// clang-format on

// A message longer than the room for it: no vector behind the last is looked at.
TEST_F(StoreFunctions, OfMessagesThatAreCut) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
  const std::string text(4000, 'x');
  auto* const vectors = as<iovec>(b_ + 1024);
  vectors[0] = {b_, 64};
  vectors[1] = {reinterpret_cast<void*>(1), ~std::size_t{0}};  // not of the message
  mmsghdr message{};
  message.msg_hdr.msg_iov = vectors;
  message.msg_hdr.msg_iovlen = 1;
  ASSERT_EQ(send(pair[0], text.data(), text.size(), 0), 4000);
  test::recorded_stores.clear();
  EXPECT_EQ(pawl_stored_recvmsg(pair[1], &message.msg_hdr, MSG_TRUNC), 4000);
  EXPECT_EQ(test::recorded_in(memory_).size(), 64u);
  ASSERT_EQ(send(pair[0], text.data(), text.size(), 0), 4000);
  test::recorded_stores.clear();
  EXPECT_EQ(pawl_stored_recvmmsg(pair[1], &message, 1, MSG_TRUNC, nullptr), 1);
  EXPECT_EQ(message.msg_len, 4000u);
  EXPECT_EQ(test::recorded_in(memory_).size(), 64u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they look at what is given
  // A wrong pointer is an error, not the end.
  auto* const nowhere = reinterpret_cast<socklen_t*>(1);
  EXPECT_EQ(pawl_stored_getsockname(pair[0], as<sockaddr>(b_), nowhere), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(pawl_stored_recvfrom(pair[1], b_, 10, MSG_DONTWAIT, as<sockaddr>(b_ + 64), nowhere),
            -1);
  ASSERT_EQ(send(pair[0], "x", 1, 0), 1);
  errno = 0;
  const iovec* volatile no_vectors = reinterpret_cast<iovec*>(1);  // which compilers would warn of
  EXPECT_EQ(pawl_stored_readv(pair[1], no_vectors, 1), -1);
  EXPECT_EQ(errno, EFAULT);
#endif
  close(pair[0]);
  close(pair[1]);
}

// What a call that fails late has written, into buffers longer than 64 KiB.
TEST(StoreFunctionsThatFail, HaveWritten) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  test::RegionMemory memory(kLarge);
  char* const b = memory.start();
  const auto all_marked_up_to = [&](std::size_t last) {
    EXPECT_NE(b[last], 0);
    EXPECT_TRUE(test::recorded_in(memory).contains(last));
  };
  test::recorded_stores.clear();
  const wchar_t wrong[] = {static_cast<wchar_t>(0x7fffffff), 0};
  const std::string was = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(pawl_stored_snprintf(b, kLarge, "%150000d%ls", 1, wrong), -1);
  all_marked_up_to(149'000);
  std::memset(b, 0, kLarge);
  test::recorded_stores.clear();
  std::setlocale(LC_ALL, "C.UTF-8");
  const std::string text = std::string(100'000, 'x') + "\xff";
  EXPECT_EQ(pawl_stored_mbstowcs(as<wchar_t>(b), text.c_str(), kLarge / sizeof(wchar_t)),
            ~std::size_t{0});
  all_marked_up_to(99'000 * sizeof(wchar_t));
  std::setlocale(LC_ALL, was.c_str());
}

jmp_buf out_of_sort;
int compare_until_it_leaves(const void* one, const void* other) {
  static int left = 60;
  if (--left == 0) std::longjmp(out_of_sort, 1);
  return compare_ints(one, other);
}
TEST_F(StoreFunctions, ThatAreLeftByLongjmp) {
  check(
      [](char* b) {
        for (int i = 0; i < 100; ++i) as<int>(b)[i] = -i * 0x1010101;
      },
      [](char* b) {
        if (setjmp(out_of_sort) == 0) pawl_stored_qsort(b, 100, 4, compare_until_it_leaves);
      },
      400);
}

TEST_F(StoreFunctions, OfMessagesProcessesAndThreads) {
  CHECK_LOOSE(pawl_stored_gcvt(3.25, 5, b));
  CHECK(pawl_stored_wcstol_l(L"12 ", reinterpret_cast<wchar_t**>(b), 10,
                             newlocale(LC_ALL_MASK, "C", nullptr));
        test::recorded_stores.push_back({b, 8}); std::memset(b, 0, 8));
  const int queue = msgget(IPC_PRIVATE, 0600);
  if (queue >= 0) {
    struct {
      long type;
      char text[20];
    } message = {0x1112131415161718, "in a queue"};
    CHECK(ASSERT_EQ(msgsnd(queue, &message, 10, 0), 0);
          EXPECT_EQ(pawl_stored_msgrcv(queue, b, 100, 0, 0), 10));
    msgctl(queue, IPC_RMID, nullptr);
  }
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
  iovec vector = {pair, 4};
  check(
      [&](char* b) {
        *as<mmsghdr>(b) = {};
        as<mmsghdr>(b)->msg_hdr.msg_iov = &vector;
        as<mmsghdr>(b)->msg_hdr.msg_iovlen = 1;
      },
      [&](char* b) { EXPECT_EQ(pawl_stored_sendmmsg(pair[0], as<mmsghdr>(b), 1, 0), 1); }, 4);
  close(pair[0]);
  close(pair[1]);
  char path[] = "/bin/true";
  char* const arguments[] = {path, nullptr};
  CHECK_LOOSE(
      ASSERT_EQ(pawl_stored_posix_spawn(as<pid_t>(b), path, nullptr, nullptr, arguments, environ),
                0);
      waitpid(*as<pid_t>(b), nullptr, 0));
  CHECK_LOOSE(pawl_stored_backtrace(reinterpret_cast<void**>(b), 10));
  CHECK_LOOSE(pawl_stored_pthread_getaffinity_np(pthread_self(), 16, as<cpu_set_t>(b)));
  CHECK_LOOSE(
      pawl_stored_pthread_getschedparam(pthread_self(), as<int>(b), as<sched_param>(b + 64)));
  CHECK_LOOSE(pawl_stored_tss_create(as<tss_t>(b), nullptr));
  CHECK_LOOSE(glob64_t* found = as<glob64_t>(b); std::memset(found, 0, sizeof *found);
              test::recorded_stores.push_back({b, sizeof *found});
              pawl_stored_glob64("/", 0, nullptr, found); globfree64(found));
}

// errno is the wrapped function's, and nothing is marked that is in no mapping.
TEST_F(StoreFunctions, AreAsTheWrappedOnesAre) {
  errno = 0;
  EXPECT_EQ(pawl_stored_read(-1, b_, 10), -1);
  EXPECT_EQ(errno, EBADF);
  char local[100];
  test::recorded_stores.clear();
  EXPECT_EQ(pawl_stored_strcpy(local, "text"), local);
  EXPECT_EQ(pawl_stored_snprintf(local, sizeof local, "%d", 12), 2);
  int number = 0;
  EXPECT_EQ(pawl_stored___isoc99_sscanf("12", "%d", &number), 1);
  EXPECT_EQ(number, 12);
  EXPECT_TRUE(test::recorded_stores.empty());
}

// docs/snapshot-functions.md names each function of the list, and no other.
TEST(StoreFunctionsList, IsTheDocuments) {
  std::set<std::string> listed;
#define PAWL_STORE_FUNCTION(name) listed.insert(#name);
#include "track/store_functions.def"
#undef PAWL_STORE_FUNCTION
  const std::string source = __FILE__;
  std::ifstream file(source.substr(0, source.rfind("/tests/")) + "/docs/snapshot-functions.md");
  ASSERT_TRUE(file.is_open());
  std::set<std::string> documented;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("<!-- list:")) is_inside = true;
    if (line.starts_with("<!-- end of list")) is_inside = false;
    if (!is_inside) continue;
    for (std::size_t from = line.find('`'); from != std::string::npos;) {
      const std::size_t end = line.find('`', from + 1);
      ASSERT_NE(end, std::string::npos) << line;
      const std::string name = line.substr(from + 1, end - from - 1);
      EXPECT_TRUE(documented.insert(name).second) << name << " stands there twice";
      from = line.find('`', end + 1);
    }
  }
  EXPECT_EQ(documented, listed);
}

}  // namespace
}  // namespace pawl
