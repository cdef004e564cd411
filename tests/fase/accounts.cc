#include "fase/accounts.h"

#include <gtest/gtest.h>

#include "fase/hand_made.h"

namespace pawl::test {
namespace {

extern const pawl_fase_function functions[];
enum : std::uint32_t { kTransfer, kDepositing, kCountBoth, kLeaveNote, kFunctions };

// --- transfer: 0 moves, 1 behind the release, 2 counts -----------------------------------------

void transfer_count(Account* from, std::uint64_t transfers) {
  store(from->transfers, transfers + 1);
  pawl_fase_mutex_unlock(&from->mutex, nullptr, 0, nullptr);
}

void transfer_rest(Account* from) {
  const std::uint64_t transfers = from->transfers;
  const LiveIns live_ins(from, transfers);
  pawl_fase_cut(&functions[kTransfer], 2, &live_ins);
  transfer_count(from, transfers);
}

void transfer_move(Account* from, Account* to, std::uint64_t from_balance,
                   std::uint64_t to_balance) {
  store(from->balance, from_balance);
  store(to->balance, to_balance);
  const LiveIns live_ins(from);
  pawl_fase_mutex_unlock(&to->mutex, &functions[kTransfer], 1, &live_ins);
  transfer_rest(from);
}

void resume_transfer(std::uint32_t region, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  auto* const from = words.get<Account*>(0);
  if (region == 1) return transfer_rest(from);
  if (region == 2) return transfer_count(from, words.get<std::uint64_t>(1));
  transfer_move(from, words.get<Account*>(1), words.get<std::uint64_t>(2),
                words.get<std::uint64_t>(3));
}

// --- try_deposit: 0 ------------------------------------------------------------------------------

void deposit(Account* to, std::uint64_t balance, std::uint64_t deposits) {
  store(to->balance, balance);
  store(to->deposits, deposits);
  pawl_fase_mutex_unlock(&to->mutex, nullptr, 0, nullptr);
}

void resume_deposit(std::uint32_t, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  deposit(words.get<Account*>(0), words.get<std::uint64_t>(1), words.get<std::uint64_t>(2));
}

// --- count_both: 0 the first, 1 the second
// ---------------------------------------------------------

void count_second(Account* first, Account* second, std::uint64_t transfers) {
  store(second->transfers, transfers + 1);
  const LiveIns live_ins(first);
  pawl_fase_mutex_unlock(&second->mutex, &functions[kCountBoth], 2, &live_ins);
  pawl_fase_mutex_unlock(&first->mutex, nullptr, 0, nullptr);
}

void count_first(Account* first, Account* second, std::uint64_t transfers, void (*between)()) {
  store(first->transfers, transfers + 1);
  if (between != nullptr) between();
  pawl_fase_mutex_lock(&second->mutex);
  const std::uint64_t of_second = second->transfers;
  const LiveIns live_ins(first, second, of_second);
  pawl_fase_cut(&functions[kCountBoth], 1, &live_ins);
  count_second(first, second, of_second);
}

void resume_count_both(std::uint32_t region, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  auto* const first = words.get<Account*>(0);
  if (region == 2) {
    pawl_fase_mutex_unlock(&first->mutex, nullptr, 0, nullptr);
    return;
  }
  auto* const second = words.get<Account*>(1);
  const auto transfers = words.get<std::uint64_t>(2);
  if (region == 0) {
    count_first(first, second, transfers, nullptr);
  } else {
    count_second(first, second, transfers);
  }
}

// --- leave_note: 0 moves, 1 behind the first release, 2 leaves it, 3 behind the second -----------

void leave_note_there(pawl_fase* fase, Account* from, Account* third, void* note, void* before) {
  store(third->note, note);
  EXPECT_EQ(pawl_fase_free(fase, before), 0) << pawl_last_error();
  const LiveIns live_ins(from);
  pawl_fase_mutex_unlock(&third->mutex, &functions[kLeaveNote], 3, &live_ins);
  pawl_fase_mutex_unlock(&from->mutex, nullptr, 0, nullptr);
}

void leave_note_rest(pawl_fase* fase, Account* from, Account* third, void (*between)()) {
  void* const note = pawl_fase_malloc(fase, 40);
  if (between != nullptr) between();
  pawl_fase_mutex_lock(&third->mutex);
  void* const before = third->note;
  const LiveIns live_ins(fase, from, third, note, before);
  pawl_fase_cut(&functions[kLeaveNote], 2, &live_ins);
  leave_note_there(fase, from, third, note, before);
}

void leave_note_move(pawl_fase* fase, Account* from, Account* to, Account* third,
                     std::uint64_t from_balance, std::uint64_t to_balance, void (*between)()) {
  store(from->balance, from_balance);
  store(to->balance, to_balance);
  const LiveIns live_ins(fase, from, third);
  pawl_fase_mutex_unlock(&to->mutex, &functions[kLeaveNote], 1, &live_ins);
  leave_note_rest(fase, from, third, between);
}

void resume_leave_note(std::uint32_t region, const void* live_ins, const void*, void*) {
  const Words words(live_ins);
  if (region == 3) {
    pawl_fase_mutex_unlock(&words.get<Account*>(0)->mutex, nullptr, 0, nullptr);
    return;
  }
  auto* const fase = words.get<pawl_fase*>(0);
  auto* const from = words.get<Account*>(1);
  if (region == 0) {
    leave_note_move(fase, from, words.get<Account*>(2), words.get<Account*>(3),
                    words.get<std::uint64_t>(4), words.get<std::uint64_t>(5), nullptr);
  } else if (region == 1) {
    leave_note_rest(fase, from, words.get<Account*>(2), nullptr);
  } else {
    leave_note_there(fase, from, words.get<Account*>(2), words.get<void*>(3), words.get<void*>(4));
  }
}

// --------------------------------------------------------------------------------------------------

constexpr pawl_fase_region kTransferRegions[] = {
    {1, 32, PAWL_FASE_AT_CUT}, {2, 8, PAWL_FASE_AFTER_UNLOCK}, {3, 16, PAWL_FASE_AT_CUT}};
constexpr pawl_fase_region kDepositRegions[] = {{4, 24, PAWL_FASE_AT_CUT}};
constexpr pawl_fase_region kCountBothRegions[] = {
    {5, 24, PAWL_FASE_AT_CUT}, {6, 24, PAWL_FASE_AT_CUT}, {7, 8, PAWL_FASE_AFTER_UNLOCK}};

constexpr pawl_fase_region kLeaveNoteRegions[] = {{8, 48, PAWL_FASE_AT_CUT},
                                                  {9, 24, PAWL_FASE_AFTER_UNLOCK},
                                                  {10, 40, PAWL_FASE_AT_CUT},
                                                  {11, 8, PAWL_FASE_AFTER_UNLOCK}};

const pawl_fase_function functions[] = {
    {address_of(&transfer), resume_transfer, "transfer", "accounts.c", kTransferRegions, 3, 0},
    {address_of(&try_deposit), resume_deposit, "try_deposit", "accounts.c", kDepositRegions, 1, 1},
    {address_of(&count_both), resume_count_both, "count_both", "accounts.c", kCountBothRegions, 3,
     0},
    {address_of(&leave_note), resume_leave_note, "leave_note", "accounts.c", kLeaveNoteRegions, 4,
     0},
};

[[maybe_unused]] const bool registered = [] {
  pawl_fase_register(functions, functions + kFunctions);
  return true;
}();

}  // namespace

Account* make_accounts(pawl_fase* fase) {
  auto* const accounts =
      static_cast<Account*>(pawl_fase_calloc(fase, kAccounts + 1, sizeof(Account)));
  for (std::uint64_t i = 0; i < kAccounts; ++i) store(accounts[i].balance, kBalance);
  EXPECT_EQ(pawl_fase_set_root(fase, accounts), 0) << pawl_last_error();
  return accounts;
}

void transfer(Account* from, Account* to, std::uint64_t amount) {
  pawl_fase_mutex_lock(from < to ? &from->mutex : &to->mutex);
  pawl_fase_mutex_lock(from < to ? &to->mutex : &from->mutex);
  const std::uint64_t from_balance = from->balance - amount;
  const std::uint64_t to_balance = to->balance + amount;
  const LiveIns live_ins(from, to, from_balance, to_balance);
  pawl_fase_cut(&functions[kTransfer], 0, &live_ins);
  transfer_move(from, to, from_balance, to_balance);
}

bool try_deposit(Account* to) {
  if (pawl_fase_mutex_trylock(&to->mutex) != 0) return false;
  const std::uint64_t balance = to->balance + kDeposit;
  const std::uint64_t deposits = to->deposits + 1;
  const LiveIns live_ins(to, balance, deposits);
  pawl_fase_cut(&functions[kDepositing], 0, &live_ins);
  deposit(to, balance, deposits);
  return true;
}

void count_both(Account* first, Account* second, void (*between)()) {
  pawl_fase_mutex_lock(&first->mutex);
  const std::uint64_t transfers = first->transfers;
  const LiveIns live_ins(first, second, transfers);
  pawl_fase_cut(&functions[kCountBoth], 0, &live_ins);
  count_first(first, second, transfers, between);
}

void leave_note(pawl_fase* fase, Account* from, Account* to, Account* third, void (*between)()) {
  pawl_fase_mutex_lock(&from->mutex);
  pawl_fase_mutex_lock(&to->mutex);
  const std::uint64_t from_balance = from->balance - 100;
  const std::uint64_t to_balance = to->balance + 100;
  const LiveIns live_ins(fase, from, to, third, from_balance, to_balance);
  pawl_fase_cut(&functions[kLeaveNote], 0, &live_ins);
  leave_note_move(fase, from, to, third, from_balance, to_balance, between);
}

void expect_balanced(const Account* accounts) {
  std::uint64_t sum = 0;
  std::uint64_t expected = kAccounts * kBalance;
  for (std::uint64_t i = 0; i < kAccounts; ++i) {
    sum += accounts[i].balance;
    expected += accounts[i].deposits * kDeposit;
  }
  EXPECT_EQ(sum, expected);
}

}  // namespace pawl::test
