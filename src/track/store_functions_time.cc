// pawl_stored_*: <time.h>, <sys/time.h>, <sys/times.h> and <sys/timex.h>.
#include "track/store_functions.h"

#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>

#include <csignal>
#include <ctime>

using pawl::stored::mark;
using pawl::stored::mark_array;
using pawl::stored::mark_string;
using pawl::stored::written_at_most;

PAWL_STORED(time_t, time, (time_t* to), (to), mark(to));
PAWL_STORED(int, gettimeofday, (timeval * to, void* zone), (to, zone), mark(to);
            mark(static_cast<struct timezone*>(zone)));
PAWL_STORED(int, clock_gettime, (clockid_t clock, timespec* to), (clock, to), mark(to));
PAWL_STORED(int, clock_getres, (clockid_t clock, timespec* to), (clock, to), mark(to));
PAWL_STORED(int, clock_getcpuclockid, (pid_t process, clockid_t* to), (process, to), mark(to));
PAWL_STORED(int, timespec_get, (timespec * to, int base), (to, base), mark(to));
PAWL_STORED(int, timespec_getres, (timespec * to, int base), (to, base), mark(to));
PAWL_STORED(int, nanosleep, (const timespec* time, timespec* rest), (time, rest), mark(rest));
PAWL_STORED(int, clock_nanosleep,
            (clockid_t clock, int flags, const timespec* time, timespec* rest),
            (clock, flags, time, rest), mark(rest));
PAWL_STORED(clock_t, times, (tms * to), (to), mark(to));

PAWL_STORED(tm*, gmtime_r, (const time_t* time, tm* to), (time, to), mark(to));
PAWL_STORED(tm*, localtime_r, (const time_t* time, tm* to), (time, to), mark(to));
// NOLINTNEXTLINE(bugprone-unsafe-functions): it is what programs call
PAWL_STORED(char*, asctime_r, (const tm* time, char* to), (time, to),
            if (result != nullptr) mark_string(to));
PAWL_STORED(char*, ctime_r, (const time_t* time, char* to), (time, to),
            if (result != nullptr) mark_string(to));
// These bring the fields into their ranges.
PAWL_STORED(time_t, mktime, (tm * time), (time), mark(time));
PAWL_STORED(time_t, timegm, (tm * time), (time), mark(time));
PAWL_STORED(time_t, timelocal, (tm * time), (time), mark(time));
PAWL_STORED(char*, strptime, (const char* from, const char* format, tm* to), (from, format, to),
            mark(to));
PAWL_STORED(char*, strptime_l, (const char* from, const char* format, tm* to, locale_t locale),
            (from, format, to, locale), mark(to));
PAWL_STORED(int, getdate_r, (const char* from, tm* to), (from, to), mark(to));

namespace {

// Without room for all, some of it may be there.
template <class Character>
void mark_formatted(const Character* to, size_t size, size_t result) {
  mark_array(to, result == 0 ? written_at_most(size) : result + 1);
}

}  // namespace

PAWL_STORED(size_t, strftime, (char* to, size_t size, const char* format, const tm* time),
            (to, size, format, time), mark_formatted(to, size, result));
PAWL_STORED(size_t, strftime_l,
            (char* to, size_t size, const char* format, const tm* time, locale_t locale),
            (to, size, format, time, locale), mark_formatted(to, size, result));
PAWL_STORED(size_t, wcsftime, (wchar_t * to, size_t size, const wchar_t* format, const tm* time),
            (to, size, format, time), mark_formatted(to, size, result));
PAWL_STORED(size_t, wcsftime_l,
            (wchar_t * to, size_t size, const wchar_t* format, const tm* time, locale_t locale),
            (to, size, format, time, locale), mark_formatted(to, size, result));

PAWL_STORED(int, getitimer, (__itimer_which_t timer, itimerval* to), (timer, to), mark(to));
PAWL_STORED(int, setitimer, (__itimer_which_t timer, const itimerval* value, itimerval* old),
            (timer, value, old), mark(old));
PAWL_STORED(int, timer_create, (clockid_t clock, sigevent* event, timer_t* to), (clock, event, to),
            mark(to));
PAWL_STORED(int, timer_gettime, (timer_t timer, itimerspec* to), (timer, to), mark(to));
PAWL_STORED(int, timer_settime,
            (timer_t timer, int flags, const itimerspec* value, itimerspec* old),
            (timer, flags, value, old), mark(old));
PAWL_STORED(int, timerfd_gettime, (int timer, itimerspec* to), (timer, to), mark(to));
PAWL_STORED(int, timerfd_settime, (int timer, int flags, const itimerspec* value, itimerspec* old),
            (timer, flags, value, old), mark(old));
PAWL_STORED(int, adjtime, (const timeval* by, timeval* old), (by, old), mark(old));
PAWL_STORED(int, adjtimex, (timex * to), (to), mark(to));
PAWL_STORED(int, ntp_adjtime, (timex * to), (to), mark(to));
// The symbol of ntp_gettime().
extern "C" PAWL_PUBLIC int pawl_stored_ntp_gettimex(ntptimeval* to) {
  const int result = ntp_gettime(to);
  mark(to);
  return result;
}
PAWL_STORED(int, clock_adjtime, (clockid_t clock, timex* to), (clock, to), mark(to));
