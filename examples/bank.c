/* A bank in a mapped file.
 *
 *   bank run   --mode plain|pawl [--accounts N] [--seed S] [--transfers N] FILE
 *   bank audit --mode plain|pawl [--accounts N] FILE
 *
 * `run` opens the bank in FILE, or founds one with N accounts, and moves money between random
 * accounts, a batch of transfers at a time.  It acknowledges a batch, with a line on its standard
 * output, once msync() has returned.  `audit` counts the money and checks every account and the
 * ledger against the transfers that must have led there; it exits with 0 when all is right, 1 when
 * the books are wrong, 2 when it could not look.
 *
 * The two modes differ in how the file is mapped and in nothing else.  Under `plain`, the file
 * holds whatever stores were made before a crash: money that has left one account and has not
 * reached the other is gone.  Under `pawl`, the file moves from batch to batch, whole or not at
 * all.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pawl/pawl.h"

enum {
  EXIT_RIGHT = 0,
  EXIT_WRONG = 1,
  EXIT_TROUBLE = 2,

  PAGE_BYTES = 4096,
  TRANSFERS_PER_BATCH = 64,
  LEDGER_RECEIPTS = 1024,
  SIGNING_ROUNDS = 64,
  ACCOUNTS_DEFAULT = 4096,
  ACCOUNTS_MAX = 1 << 20,
};
static const int64_t OPENING_BALANCE_CENTS = 100000;
static const uint64_t TRANSFER_CENTS_MAX = 50000;
static const char MAGIC[16] = "a bank, v1";

/* ---------------------------------------------------------------------------- what is in the file
 */

struct account {
  char holder[48];
  int64_t balance_cents;
  uint64_t transfers; /* in and out */
};

struct receipt {
  char text[120];
  uint64_t signature;
};

struct bank {
  char magic[16];
  uint64_t accounts;
  uint64_t seed;
  uint64_t transfers; /* made so far; transfer 1 is the first */
  char unused[PAGE_BYTES - 40];
  struct receipt ledger[LEDGER_RECEIPTS]; /* of the latest transfers: transfer n in n % RECEIPTS */
  struct account account[];
};

static size_t bank_bytes(uint64_t accounts) {
  size_t bytes = sizeof(struct bank) + accounts * sizeof(struct account);
  return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* -------------------------------------------------------------------- what plain and pawl do apart
 */

enum mode { MODE_NONE, MODE_PLAIN, MODE_PAWL };

static void* map_file(enum mode mode, int fd, size_t length) {
  const int protection = PROT_READ | PROT_WRITE;
  return mode == MODE_PAWL ? pawl_mmap(NULL, length, protection, MAP_ATOMIC, fd, 0)
                           : mmap(NULL, length, protection, MAP_SHARED, fd, 0);
}

static int set_size(enum mode mode, int fd, off_t length) {
  return mode == MODE_PAWL ? pawl_ftruncate(fd, length) : ftruncate(fd, length);
}

static int commit(enum mode mode, void* address, size_t length) {
  return mode == MODE_PAWL ? pawl_msync(address, length, MS_SYNC) : msync(address, length, MS_SYNC);
}

static int unmap_file(enum mode mode, void* address, size_t length) {
  return mode == MODE_PAWL ? pawl_munmap(address, length) : munmap(address, length);
}

/* ----------------------------------------------------------------------------------------
 * transfers */

/* The n-th transfer of a bank follows from its seed, so that an auditor can tell what every balance
 * must be. */
struct transfer {
  uint64_t from;
  uint64_t to;
  int64_t cents; /* wanted; nobody pays more than they have */
};

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static struct transfer nth_transfer(const struct bank* bank, uint64_t n) {
  const uint64_t random = mix(bank->seed ^ mix(n));
  struct transfer transfer;
  transfer.from = random % bank->accounts;
  transfer.to = (transfer.from + 1 + mix(random) % (bank->accounts - 1)) % bank->accounts;
  transfer.cents = (int64_t)(1 + mix(random + 1) % TRANSFER_CENTS_MAX);
  return transfer;
}

/* Stands for the work that a real bank does before it believes in a transfer. */
static uint64_t sign(const char* text, uint64_t seed) {
  uint64_t signature = seed;
  for (int round = 0; round < SIGNING_ROUNDS; ++round) {
    for (const char* c = text; *c != '\0'; ++c) {
      signature = (signature ^ (unsigned char)*c) * 0x100000001b3u;
    }
  }
  return signature;
}

static void write_receipt(struct receipt* receipt, const struct bank* bank, uint64_t n,
                          const struct transfer* transfer) {
  memset(receipt->text, 0, sizeof receipt->text);
  snprintf(receipt->text, sizeof receipt->text,
           "transfer %" PRIu64 ": account %" PRIu64 " pays account %" PRIu64 " up to %" PRId64
           " cents",
           n, transfer->from, transfer->to, transfer->cents);
  receipt->signature = sign(receipt->text, bank->seed);
}

static void make_transfer(struct bank* bank, uint64_t n) {
  const struct transfer transfer = nth_transfer(bank, n);
  struct account* from = &bank->account[transfer.from];
  struct account* to = &bank->account[transfer.to];
  const int64_t cents = transfer.cents < from->balance_cents ? transfer.cents : from->balance_cents;

  from->balance_cents -= cents;
  from->transfers += 1;
  /* From here to the credit, the money is nowhere. */
  write_receipt(&bank->ledger[n % LEDGER_RECEIPTS], bank, n, &transfer);
  to->balance_cents += cents;
  to->transfers += 1;
  bank->transfers = n;
}

/* --------------------------------------------------------------------------------- opening a bank
 */

struct options {
  enum mode mode;
  uint64_t accounts;
  uint64_t seed;
  uint64_t transfers; /* to make, at least, before stopping; 0: until killed */
  bool found_only;    /* --transfers 0 */
  const char* path;
};

struct open_bank {
  struct bank* bank;
  size_t length;
  uint64_t size_bytes; /* of the file, when it was opened */
  int fd;
};

static void give_up(const struct options* options, const char* what) {
  const char* why = options->mode == MODE_PAWL ? pawl_last_error() : strerror(errno);
  fprintf(stderr, "bank: %s: cannot %s: %s\n", options->path, what, why);
  exit(EXIT_TROUBLE);
}

static struct open_bank open_bank(const struct options* options, int flags) {
  struct open_bank open_bank;
  struct stat status;
  open_bank.length = bank_bytes(options->accounts);
  open_bank.fd = open(options->path, flags | O_CLOEXEC, 0644);
  if (open_bank.fd < 0) {
    fprintf(stderr, "bank: cannot open %s: %s\n", options->path, strerror(errno));
    exit(EXIT_TROUBLE);
  }
  /* Under Pawl this also recovers what a crash left behind, the file's size included. */
  open_bank.bank = map_file(options->mode, open_bank.fd, open_bank.length);
  if (open_bank.bank == MAP_FAILED) give_up(options, "map it");
  if (fstat(open_bank.fd, &status) != 0) {
    perror("bank: fstat");
    exit(EXIT_TROUBLE);
  }
  open_bank.size_bytes = (uint64_t)status.st_size;
  return open_bank;
}

static void close_bank(const struct options* options, struct open_bank* open_bank) {
  if (unmap_file(options->mode, open_bank->bank, open_bank->length) != 0) {
    give_up(options, "close it");
  }
  close(open_bank->fd);
}

static void found_bank(const struct options* options, struct open_bank* open_bank) {
  struct bank* bank = open_bank->bank;
  if (set_size(options->mode, open_bank->fd, (off_t)open_bank->length) != 0) {
    give_up(options, "make room for the accounts");
  }
  bank->accounts = options->accounts;
  bank->seed = options->seed;
  bank->transfers = 0;
  for (uint64_t i = 0; i < options->accounts; ++i) {
    snprintf(bank->account[i].holder, sizeof bank->account[i].holder, "holder %" PRIu64, i);
    bank->account[i].balance_cents = OPENING_BALANCE_CENTS;
  }
  memcpy(bank->magic, MAGIC, sizeof bank->magic);
  if (commit(options->mode, bank, open_bank->length) != 0) give_up(options, "found the bank");
}

/* Says why the file is not the bank that was asked for; NULL when it is. */
static const char* not_this_bank(const struct options* options, const struct open_bank* open_bank) {
  if (open_bank->size_bytes < open_bank->length) return "it is too short for so many accounts";
  if (memcmp(open_bank->bank->magic, MAGIC, sizeof MAGIC) != 0) return "it holds no bank";
  if (open_bank->bank->accounts != options->accounts) return "its number of accounts is another";
  return NULL;
}

/* ------------------------------------------------------------------------------------ run and
 * audit */

static void acknowledge(uint64_t transfers) {
  char line[64];
  const int length = snprintf(line, sizeof line, "acknowledged %" PRIu64 "\n", transfers);
  if (write(STDOUT_FILENO, line, (size_t)length) != length) exit(EXIT_TROUBLE);
}

static int run(const struct options* options) {
  struct open_bank open = open_bank(options, O_RDWR | O_CREAT);
  struct bank* bank = open.bank;
  if (open.size_bytes == 0) {
    found_bank(options, &open);
  } else {
    const char* why = not_this_bank(options, &open);
    if (why != NULL) {
      fprintf(stderr, "bank: %s: %s\n", options->path, why);
      close_bank(options, &open);
      return EXIT_TROUBLE;
    }
  }
  acknowledge(bank->transfers);

  uint64_t made = 0;
  while (!options->found_only && (options->transfers == 0 || made < options->transfers)) {
    do {
      make_transfer(bank, bank->transfers + 1);
      made += 1;
    } while (bank->transfers % TRANSFERS_PER_BATCH != 0);
    if (commit(options->mode, bank, open.length) != 0) give_up(options, "commit a batch");
    acknowledge(bank->transfers);
  }
  close_bank(options, &open);
  return EXIT_RIGHT;
}

/* What the accounts must hold after the bank's transfers; NULL when memory ran out. */
static struct account* replay(const struct bank* bank) {
  struct account* accounts = calloc(bank->accounts, sizeof *accounts);
  if (accounts == NULL) return NULL;
  for (uint64_t i = 0; i < bank->accounts; ++i) accounts[i].balance_cents = OPENING_BALANCE_CENTS;
  for (uint64_t n = 1; n <= bank->transfers; ++n) {
    const struct transfer transfer = nth_transfer(bank, n);
    struct account* from = &accounts[transfer.from];
    struct account* to = &accounts[transfer.to];
    const int64_t cents =
        transfer.cents < from->balance_cents ? transfer.cents : from->balance_cents;
    from->balance_cents -= cents;
    from->transfers += 1;
    to->balance_cents += cents;
    to->transfers += 1;
  }
  return accounts;
}

static uint64_t count_wrong_accounts(const struct bank* bank, const struct account* expected) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < bank->accounts; ++i) {
    wrong += bank->account[i].balance_cents != expected[i].balance_cents ||
             bank->account[i].transfers != expected[i].transfers;
  }
  return wrong;
}

static uint64_t count_wrong_receipts(const struct bank* bank) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < LEDGER_RECEIPTS && i < bank->transfers; ++i) {
    const uint64_t n = bank->transfers - i;
    const struct transfer transfer = nth_transfer(bank, n);
    struct receipt expected;
    write_receipt(&expected, bank, n, &transfer);
    wrong += memcmp(&bank->ledger[n % LEDGER_RECEIPTS], &expected, sizeof expected) != 0;
  }
  return wrong;
}

static int audit(const struct options* options) {
  struct open_bank open = open_bank(options, O_RDWR);
  const struct bank* bank = open.bank;
  const char* why = not_this_bank(options, &open);
  if (why != NULL) {
    fprintf(stderr, "bank: %s: %s\n", options->path, why);
    close_bank(options, &open);
    return EXIT_WRONG;
  }
  struct account* expected = replay(bank);
  if (expected == NULL) {
    perror("bank: audit");
    return EXIT_TROUBLE;
  }
  int64_t total = 0;
  for (uint64_t i = 0; i < bank->accounts; ++i) total += bank->account[i].balance_cents;
  const int64_t missing = OPENING_BALANCE_CENTS * (int64_t)bank->accounts - total;
  const uint64_t wrong_accounts = count_wrong_accounts(bank, expected);
  const uint64_t wrong_receipts = count_wrong_receipts(bank);
  free(expected);

  printf("transfers %" PRIu64 "\n", bank->transfers);
  printf("transfers_per_batch %d\n", TRANSFERS_PER_BATCH);
  printf("missing_cents %" PRId64 "\n", missing);
  printf("wrong_accounts %" PRIu64 "\n", wrong_accounts);
  printf("wrong_receipts %" PRIu64 "\n", wrong_receipts);
  close_bank(options, &open);
  const bool right = missing == 0 && wrong_accounts == 0 && wrong_receipts == 0;
  puts(right ? "The books are right." : "The books are WRONG.");
  return right ? EXIT_RIGHT : EXIT_WRONG;
}

/* ------------------------------------------------------------------------------------ command line
 */

static int usage(void) {
  fputs(
      "usage: bank run   --mode plain|pawl [--accounts N] [--seed S] [--transfers N] FILE\n"
      "       bank audit --mode plain|pawl [--accounts N] FILE\n",
      stderr);
  return EXIT_TROUBLE;
}

static uint64_t number(const char* text, uint64_t min, uint64_t max) {
  char* end;
  errno = 0;
  const uint64_t value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < min || value > max) {
    fprintf(stderr, "bank: %s: not a number from %" PRIu64 " to %" PRIu64 "\n", text, min, max);
    exit(EXIT_TROUBLE);
  }
  return value;
}

int main(int argc, char** argv) {
  static const struct option names[] = {{"mode", required_argument, NULL, 'm'},
                                        {"accounts", required_argument, NULL, 'a'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"transfers", required_argument, NULL, 't'},
                                        {NULL, 0, NULL, 0}};
  struct options options = {.accounts = ACCOUNTS_DEFAULT, .seed = 1};
  int name;
  while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
    switch (name) {
      case 'm':
        if (strcmp(optarg, "plain") == 0) options.mode = MODE_PLAIN;
        if (strcmp(optarg, "pawl") == 0) options.mode = MODE_PAWL;
        break;
      case 'a':
        options.accounts = number(optarg, 2, ACCOUNTS_MAX);
        break;
      case 's':
        options.seed = number(optarg, 0, UINT64_MAX);
        break;
      case 't':
        options.transfers = number(optarg, 0, UINT64_MAX);
        options.found_only = options.transfers == 0;
        break;
      default:
        return usage();
    }
  }
  if (options.mode == MODE_NONE || argc - optind != 2) return usage();
  options.path = argv[optind + 1];
  if (strcmp(argv[optind], "run") == 0) return run(&options);
  if (strcmp(argv[optind], "audit") == 0) return audit(&options);
  return usage();
}
