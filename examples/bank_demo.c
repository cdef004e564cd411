/* Kills a bank at random moments, again and again, and counts how often money was lost.
 *
 *   bank_demo [--kills N] [--seed S] BANK DIRECTORY
 *
 * BANK is the program made from bank.c; DIRECTORY, on the disk that is to be tried, takes two
 * files.  The bank runs under plain mmap() and msync() and under Pawl by turns; each run is ended
 * by SIGKILL, some while the file is being opened and recovered, and then the books are audited.
 * A terminal shows both banks as they go; else there is a line now and then, and the outcome.
 * Exits with 0 when Pawl kept every promise and plain lost money; 1 when not; 2 when something
 * else went wrong.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  EXIT_KEPT = 0,
  EXIT_BROKEN = 1,
  EXIT_TROUBLE = 2,

  KILLS_DEFAULT = 60,
  KILLS_MAX = 1000000,
  RUN_MS_MAX = 100,    /* from the first acknowledgement to the kill */
  OPENING_MS_MAX = 30, /* from the start to a kill that is to hit the opening */
  OPENING_KILL_ONE_IN = 5,
  AUDIT_KILL_ONE_IN = 5,
  AUDIT_KILLS_MAX = 3,
  OUTPUT_BYTES = 4096,

  LINES_OF_PROGRESS = 5, /* where there is no terminal */
};

struct system {
  const char* mode;
  const char* label;
  char path[1024];
  uint64_t acknowledged;
  /* What came of it. */
  unsigned kills;
  unsigned kills_while_opening;
  uint64_t transfers_acknowledged;
  unsigned times_money_lost;
  int64_t cents_lost_most;
  unsigned times_books_wrong;
  unsigned times_batch_torn;
  unsigned times_acknowledged_lost;
};

static const char* bank_program;

/* -------------------- chance */

static uint64_t random_state;

static uint64_t random_below(uint64_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % bound;
}

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* -------------------- one run of a bank */

static void trouble(const char* what) {
  fprintf(stderr, "bank_demo: %s: %s\n", what, strerror(errno));
  exit(EXIT_TROUBLE);
}

struct child {
  pid_t process;
  int output;
  char tail[OUTPUT_BYTES]; /* what it wrote last, ended by a zero byte */
  size_t tail_length;
};

static struct child start_bank(const struct system* system, const char* verb,
                               const char* transfers) {
  struct child child = {.tail_length = 0};
  int ends[2];
  if (pipe(ends) != 0) trouble("pipe");
  child.process = fork();
  if (child.process < 0) trouble("fork");
  if (child.process == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(bank_program, "bank", verb, "--mode", system->mode, system->path,
          transfers == NULL ? (char*)NULL : "--transfers", transfers, (char*)NULL);
    trouble(bank_program);
  }
  close(ends[1]);
  child.output = ends[0];
  return child;
}

/* Reads what the child has to say; false at the end of it.  Keeps the last half buffer at least. */
static bool read_output(struct child* child) {
  if (child->tail_length > OUTPUT_BYTES / 2) {
    const size_t kept = OUTPUT_BYTES / 4;
    memmove(child->tail, child->tail + child->tail_length - kept, kept);
    child->tail_length = kept;
  }
  const ssize_t count =
      read(child->output, child->tail + child->tail_length, OUTPUT_BYTES - 1 - child->tail_length);
  if (count < 0) trouble("read");
  child->tail_length += (size_t)count;
  child->tail[child->tail_length] = '\0';
  return count > 0;
}

/* Reads until the deadline; false when the child ended its output before. */
static bool read_until(struct child* child, uint64_t deadline_us) {
  for (uint64_t now = now_us(); now < deadline_us; now = now_us()) {
    struct pollfd waiting = {.fd = child->output, .events = POLLIN};
    const struct timespec nap = {.tv_nsec = 100000}; /* poll() counts in whole milliseconds */
    const int ready = poll(&waiting, 1, (int)((deadline_us - now) / 1000));
    if (ready < 0) trouble("poll");
    if (ready > 0 && !read_output(child)) return false;
    if (ready == 0) nanosleep(&nap, NULL);
  }
  return true;
}

/* Waits for the first line; false when there is none. */
static bool read_first_line(struct child* child) {
  while (child->tail_length == 0 || strchr(child->tail, '\n') == NULL) {
    if (!read_output(child)) return false;
  }
  return true;
}

/* Returns what waitpid() says of it. */
static int finish(struct child* child) {
  int status;
  while (read_output(child)) {
  }
  close(child->output);
  if (waitpid(child->process, &status, 0) != child->process) trouble("waitpid");
  return status;
}

static void kill_and_finish(struct child* child) {
  kill(child->process, SIGKILL);
  const int status = finish(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_TROUBLE) {
    fputs("bank_demo: the bank gave up by itself\n", stderr);
    exit(EXIT_TROUBLE);
  }
}

/* The number in the last whole line "label number"; false when there is no such line. */
static bool last_number(const struct child* child, const char* label, int64_t* number) {
  bool found = false;
  const size_t label_length = strlen(label);
  const char* line = child->tail;
  for (const char* end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    if (strncmp(line, label, label_length) == 0 && line[label_length] == ' ') {
      *number = strtoll(line + label_length, NULL, 10);
      found = true;
    }
  }
  return found;
}

/* -------------------- a round */

static void found_bank(struct system* system) {
  char journal[sizeof system->path + 8];
  snprintf(journal, sizeof journal, "%s.pawl", system->path);
  unlink(system->path);
  unlink(journal);
  struct child child = start_bank(system, "run", "0");
  if (finish(&child) != 0) {
    fprintf(stderr, "bank_demo: no bank could be founded in %s\n", system->path);
    exit(EXIT_TROUBLE);
  }
  system->acknowledged = 0;
}

static void run_and_kill(struct system* system) {
  struct child child = start_bank(system, "run", NULL);
  if (random_below(OPENING_KILL_ONE_IN) == 0) {
    read_until(&child, now_us() + random_below(OPENING_MS_MAX * 1000));
  } else if (read_first_line(&child)) {
    read_until(&child, now_us() + random_below(RUN_MS_MAX * 1000));
  }
  kill_and_finish(&child);
  int64_t acknowledged;
  if (last_number(&child, "acknowledged", &acknowledged)) {
    system->transfers_acknowledged += (uint64_t)acknowledged - system->acknowledged;
    system->acknowledged = (uint64_t)acknowledged;
  } else {
    system->kills_while_opening += 1;
  }
  system->kills += 1;
}

/* Opening again is no safe moment either. */
static void kill_while_opening(struct system* system) {
  if (random_below(AUDIT_KILL_ONE_IN) != 0) return;
  for (uint64_t kills = 1 + random_below(AUDIT_KILLS_MAX); kills > 0; --kills) {
    struct child child = start_bank(system, "audit", NULL);
    read_until(&child, now_us() + random_below(OPENING_MS_MAX * 1000));
    kill_and_finish(&child);
    system->kills += 1;
    system->kills_while_opening += 1;
  }
}

static void audit(struct system* system) {
  struct child child = start_bank(system, "audit", NULL);
  const int status = finish(&child);
  int64_t transfers;
  int64_t batch;
  int64_t missing_cents;
  if (!WIFEXITED(status) || WEXITSTATUS(status) == EXIT_TROUBLE ||
      !last_number(&child, "transfers", &transfers) ||
      !last_number(&child, "transfers_per_batch", &batch) ||
      !last_number(&child, "missing_cents", &missing_cents)) {
    fprintf(stderr, "bank_demo: %s could not be audited\n", system->path);
    exit(EXIT_TROUBLE);
  }
  const bool books_wrong = WEXITSTATUS(status) != 0;
  const int64_t beyond = transfers - (int64_t)system->acknowledged;
  const bool torn = beyond > 0 && beyond != batch;
  system->times_money_lost += missing_cents != 0;
  if (llabs(missing_cents) > system->cents_lost_most) {
    system->cents_lost_most = llabs(missing_cents);
  }
  system->times_books_wrong += books_wrong;
  system->times_batch_torn += torn;
  system->times_acknowledged_lost += beyond < 0;
  system->acknowledged = (uint64_t)transfers;
  /* Both kinds of harm stay in the file: the next round begins with a new bank. */
  if (books_wrong || torn || beyond < 0) found_bank(system);
}

/* -------------------- the screen */

static bool is_live; /* a terminal, which may be written over */
static bool has_colours;

static void look_at_terminal(void) {
  const char* const kind = getenv("TERM");
  const char* const no_colours = getenv("NO_COLOR");
  is_live = isatty(STDOUT_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0;
  has_colours = is_live && (no_colours == NULL || *no_colours == '\0');
}

static void print_verdict(bool is_good, const char* text) {
  if (has_colours)
    printf("\033[1;%dm%s\033[0m\n", is_good ? 32 : 31, text);
  else
    puts(text);
}

struct counter {
  const char* what;
  bool is_harm;
  int decimals;
  int64_t values[2];
};

/* Harm is red where there is some, and green where there is none. */
static void print_counter(const struct counter* counter) {
  printf("  %-44s", counter->what);
  for (size_t i = 0; i < 2; ++i) {
    char text[32];
    const int64_t value = counter->values[i];
    if (counter->decimals == 2)
      snprintf(text, sizeof text, "%" PRId64 ".%02d", value / 100, (int)(value % 100));
    else
      snprintf(text, sizeof text, "%" PRId64, value);
    const char* const colour = !has_colours || !counter->is_harm ? ""
                               : value != 0                      ? "\033[31m"
                                                                 : "\033[32m";
    printf("%s%14s%s", colour, text, *colour == '\0' ? "" : "\033[0m");
  }
  puts(is_live ? "\033[K" : "");
}

/* Of the plain bank and Pawl's.  Returns how many lines that took. */
static int print_table(const struct system* plain, const struct system* pawl) {
  const struct counter counters[] = {
      {"killed", false, 0, {plain->kills, pawl->kills}},
      {"  while it was opened or recovered",
       false,
       0,
       {plain->kills_while_opening, pawl->kills_while_opening}},
      {"transfers acknowledged",
       false,
       0,
       {(int64_t)plain->transfers_acknowledged, (int64_t)pawl->transfers_acknowledged}},
      {"times that money was lost", true, 0, {plain->times_money_lost, pawl->times_money_lost}},
      {"  most at once, in coins", true, 2, {plain->cents_lost_most, pawl->cents_lost_most}},
      {"times that the books were wrong",
       true,
       0,
       {plain->times_books_wrong, pawl->times_books_wrong}},
      {"times that a batch was torn", true, 0, {plain->times_batch_torn, pawl->times_batch_torn}},
      {"times that an acknowledged batch was lost",
       true,
       0,
       {plain->times_acknowledged_lost, pawl->times_acknowledged_lost}},
  };
  const int lines = (int)(sizeof counters / sizeof *counters);
  printf("  %-44s%14s%14s\n", "", plain->label, pawl->label);
  for (int i = 0; i < lines; ++i) print_counter(&counters[i]);
  return 1 + lines;
}

static void show_round(const struct system* systems, uint64_t round, uint64_t rounds) {
  if (is_live) {
    const int lines = print_table(&systems[0], &systems[1]);
    printf("\n  round %" PRIu64 " of %" PRIu64 "\033[K", round, rounds);
    fflush(stdout);
    /* Back to where it began. */
    printf("\r\033[%dA", lines + 1);
  } else if (rounds >= LINES_OF_PROGRESS && round % (rounds / LINES_OF_PROGRESS) == 0) {
    printf("round %" PRIu64 " of %" PRIu64 ": plain msync lost money %u times, Pawl %u times\n",
           round, rounds, systems[0].times_money_lost, systems[1].times_money_lost);
    fflush(stdout);
  }
}

/* -------------------- the demo */

static bool kept_every_promise(const struct system* system) {
  return system->times_money_lost == 0 && system->times_books_wrong == 0 &&
         system->times_batch_torn == 0 && system->times_acknowledged_lost == 0;
}

static uint64_t number(const char* text, uint64_t min, uint64_t max) {
  char* end;
  errno = 0;
  const uint64_t value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < min || value > max) {
    fprintf(stderr, "bank_demo: %s: not a number from %" PRIu64 " to %" PRIu64 "\n", text, min,
            max);
    exit(EXIT_TROUBLE);
  }
  return value;
}

int main(int argc, char** argv) {
  static const struct option names[] = {{"kills", required_argument, NULL, 'k'},
                                        {"seed", required_argument, NULL, 's'},
                                        {NULL, 0, NULL, 0}};
  struct system systems[2] = {{.mode = "plain", .label = "plain msync"},
                              {.mode = "pawl", .label = "Pawl"}};
  uint64_t rounds = KILLS_DEFAULT;
  uint64_t seed = now_us();
  int name;
  while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
    if (name == 'k') rounds = number(optarg, 1, KILLS_MAX);
    if (name == 's') seed = number(optarg, 0, UINT64_MAX);
    if (name == '?') return EXIT_TROUBLE;
  }
  if (argc - optind != 2) {
    fputs("usage: bank_demo [--kills N] [--seed S] BANK DIRECTORY\n", stderr);
    return EXIT_TROUBLE;
  }
  bank_program = argv[optind];
  random_state = seed | 1;

  printf(
      "A bank moves money between accounts in a mapped file, a batch of transfers an msync().\n"
      "It is killed at random moments, %" PRIu64 " times and more under each; seed %" PRIu64 ".\n",
      rounds, seed);
  fflush(stdout);
  for (size_t i = 0; i < 2; ++i) {
    const int length = snprintf(systems[i].path, sizeof systems[i].path, "%s/%s.bank",
                                argv[optind + 1], systems[i].mode);
    if (length >= (int)sizeof systems[i].path) {
      fputs("bank_demo: the directory's name is too long\n", stderr);
      return EXIT_TROUBLE;
    }
    found_bank(&systems[i]);
  }
  look_at_terminal();
  putchar('\n');
  for (uint64_t round = 1; round <= rounds; ++round) {
    for (size_t i = 0; i < 2; ++i) {
      run_and_kill(&systems[i]);
      kill_while_opening(&systems[i]);
      audit(&systems[i]);
    }
    show_round(systems, round, rounds);
  }
  if (!is_live) putchar('\n');
  print_table(&systems[0], &systems[1]);
  puts(is_live ? "\033[K" : "");
  if (!kept_every_promise(&systems[1])) {
    print_verdict(false, "Pawl broke its promise.");
    return EXIT_BROKEN;
  }
  if (systems[0].times_money_lost == 0) {
    print_verdict(false, "Plain msync lost nothing: the kills hit no transfer.  Try more --kills.");
    return EXIT_BROKEN;
  }
  print_verdict(true, "Plain msync lost money.  Pawl lost none.");
  return EXIT_KEPT;
}
