// Accounts in persistent memory, whose sum never changes, as long as transactions happen whole.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pawl::test {

inline constexpr std::size_t kAccounts = 16;

// Balances of several sizes, some of which share a word.
struct Account {
  std::uint64_t balance;
  std::uint32_t transfers;
  std::uint16_t last_amount;
  std::uint8_t last_partner;
  std::uint8_t unused;
};
struct Accounts {
  std::uint64_t done;  // transfers that were made
  Account accounts[kAccounts];
};

// In a transaction each: gives every account the same, as transfer 1; and moves the amount.
void open_accounts(Accounts& accounts, std::uint64_t balance);
void transfer(Accounts& accounts, std::size_t from, std::size_t to, std::uint16_t amount);
// Moves it, and takes it back: changes nothing.
void transfer_and_cancel(Accounts& accounts, std::size_t from, std::size_t to,
                         std::uint16_t amount);

}  // namespace pawl::test
