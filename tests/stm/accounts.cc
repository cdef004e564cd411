#include "stm/accounts.h"

namespace pawl::test {
namespace {

inline void move(Accounts& accounts, std::size_t from, std::size_t to, std::uint16_t amount) {
  Account& giver = accounts.accounts[from];
  Account& taker = accounts.accounts[to];
  giver.balance -= amount;
  taker.balance += amount;
  ++giver.transfers;
  ++taker.transfers;
  giver.last_amount = taker.last_amount = amount;
  giver.last_partner = static_cast<std::uint8_t>(to);
  taker.last_partner = static_cast<std::uint8_t>(from);
  ++accounts.done;
}

}  // namespace

void open_accounts(Accounts& accounts, std::uint64_t balance) {
  __transaction_atomic {
    for (Account& account : accounts.accounts) account.balance = balance;
    accounts.done = 1;
  }
}

void transfer(Accounts& accounts, std::size_t from, std::size_t to, std::uint16_t amount) {
  __transaction_atomic { move(accounts, from, to, amount); }
}

void transfer_and_cancel(Accounts& accounts, std::size_t from, std::size_t to,
                         std::uint16_t amount) {
  __transaction_atomic {
    move(accounts, from, to, amount);
    __transaction_cancel;
  }
}

}  // namespace pawl::test
