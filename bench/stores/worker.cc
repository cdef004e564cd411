#include "stores/worker.h"

namespace pawl::bench {
namespace {

enum class Task : std::uint32_t { turn, check, check_reopened };

struct Request {
  Task task = Task::turn;
  Operation operation = Operation::insert;
  std::uint64_t commits = 0;
};

bool answer(Channel& channel, Session& session, const Request& request) {
  TurnResult result;
  if (request.task == Task::turn)
    result.times_us = session.turn(request.operation, request.commits, result.costs);
  else if (request.task == Task::check)
    session.check();
  else
    session.check_reopened();
  return channel.send(result.costs) && channel.send_all(result.times_us);
}

}  // namespace

Worker::Worker(const StoreKind& kind, const std::string& directory, const Workload& workload)
    : process_(kind.name, [&](Channel& channel, const Process::Ready& ready) {
        Session session(kind, directory, workload);
        ready();
        Request request;
        while (channel.receive(request) && answer(channel, session, request)) {
        }
      }) {}

TurnResult Worker::take(Operation operation, std::uint64_t commits) {
  Channel& channel = process_.channel();
  TurnResult result;
  if (!channel.send(Request{Task::turn, operation, commits}) || !channel.receive(result.costs) ||
      !channel.receive_all(result.times_us)) {
    process_.fail();
  }
  return result;
}

void Worker::check() { ask_to_check(false); }
void Worker::check_reopened() { ask_to_check(true); }

void Worker::ask_to_check(bool reopened) {
  Channel& channel = process_.channel();
  TurnResult ignored;
  if (!channel.send(Request{reopened ? Task::check_reopened : Task::check, Operation::get, 0}) ||
      !channel.receive(ignored.costs) || !channel.receive_all(ignored.times_us)) {
    process_.fail();
  }
}

}  // namespace pawl::bench
