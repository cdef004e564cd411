#include "wsp/vm/machine.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "wsp/clock.h"
#include "wsp/vm/qemu_answers.h"

namespace pawl::wsp::vm {

namespace {

using QmpJson = Qmp::Json;

constexpr const char* kStateName = "pawl-state";
// More than any memory gives, so that nothing is held back.
constexpr std::int64_t kBytesPerSecondMax = std::int64_t{1} << 40;
constexpr timespec kGoOnPause{0, 500'000};
constexpr int kDowntimeMsMax = 2'000'000;  // QEMU's own bound: what is left to send may all wait

QmpJson capabilities() {
  QmpJson wanted = QmpJson::array();
  for (const char* name : {"x-ignore-shared", "events"})
    wanted.push_back({{"capability", name}, {"state", true}});
  return {{"capabilities", wanted}};
}

Status compare_parts(const std::set<std::string>& begun, const std::set<std::string>& found) {
  constexpr const char* kOther = "the machine is not what its options say any more: ";
  for (const std::string& part : found)
    if (!begun.contains(part)) return Status::failure(ESTALE, kOther + part + " is new");
  for (const std::string& part : begun)
    if (!found.contains(part)) return Status::failure(ESTALE, kOther + part + " is gone");
  return {};
}

Status during(const Status& status, const char* what) {
  if (status.ok()) return status;
  return status.with_text(status.text() + ", " + what);
}

}  // namespace

Result<Machine> Machine::start(const MachineDescription& description, const MachineDirectory& files,
                               int lock, Start start) {
  const Result<Descriptor> memory = files.files().open_file(kMemoryFile, O_RDWR);
  if (!memory.ok()) return memory.status();
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return FailedCall{errno, "cannot make a line to QEMU"};
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  const int memory_number = memory.value().get();
  const std::string memory_path = "/proc/self/fd/" + std::to_string(memory_number);
  Result<QemuProcess> process =
      QemuProcess::start(command_line(description, memory_path, theirs.get(), start),
                         {theirs.get(), lock, memory_number});
  if (!process.ok()) return process.status();
  theirs.reset(-1);  // or its end would not be heard of
  Machine machine(std::move(process.value()), Qmp(std::move(ours)));
  const Status is_set_up = machine.set_up();
  if (is_set_up.error_number() == EPIPE && !choose_display(description.options)) {
    return Status::failure(EPIPE, is_set_up.text() +
                                      "; without a desktop, give it -display none or -nographic "
                                      "(behind '--')");
  }
  PAWL_TRY(is_set_up);
  return machine;
}

Status Machine::set_up() {
  if (const Status begun = qmp_.begin(kQemuStartMsMax); !begun.ok()) {
    return begun.error_number() == EPIPE
               ? Status::failure(EPIPE, "QEMU did not start; it has said why")
               : begun;
  }
  Result<QmpJson> version = qmp_.ask("query-version", QmpJson(), kQemuAnswerMsMax);
  if (!version.ok()) return version.status();
  version_ = version_in(version.value());
  PAWL_TRY(qmp_.ask("migrate-set-capabilities", capabilities(), kQemuAnswerMsMax).status());
  PAWL_TRY(qmp_.ask("migrate-set-parameters",
                    {{"max-bandwidth", kBytesPerSecondMax}, {"downtime-limit", kDowntimeMsMax}},
                    kQemuAnswerMsMax)
               .status());
  PAWL_TRY(ask_for_parts());
  Result<std::set<std::string>> found = parts();
  if (!found.ok()) return found.status();
  parts_begun_ = std::move(found.value());
  return {};
}

Status Machine::ask_for_parts() {
  first_part_query_ = 0;
  for (const PartQuery& query : part_queries()) {
    const Result<std::uint64_t> sent = qmp_.send(query.command, query.arguments());
    if (!sent.ok()) return sent.status();
    if (first_part_query_ == 0) first_part_query_ = sent.value();
  }
  return {};
}

// What ask_for_parts() has asked for.
Result<std::set<std::string>> Machine::parts() {
  std::uint64_t number = first_part_query_;
  std::set<std::string> found;
  for (const PartQuery& query : part_queries()) {
    const Result<QmpJson> told = qmp_.answer(number++, kQemuAnswerMsMax);
    if (!told.ok()) return told.status();
    for (const QmpJson& part : told.value()) found.insert(query.in_words(part));
  }
  return found;
}

Result<std::vector<std::string>> Machine::disk_files() {
  Result<QmpJson> nodes = qmp_.ask("query-named-block-nodes", {{"flat", true}}, kQemuAnswerMsMax);
  if (!nodes.ok()) return nodes.status();
  return disk_files_in(nodes.value());
}

Result<FileIdentity> Machine::identify_disk(const std::string& path) const {
  Result<FileIdentity> disk = identify(path);
  if (!disk.ok()) return disk;
  const Result<bool> is_open = process_.has_open(disk.value());
  if (!is_open.ok()) return is_open.status();
  if (!is_open.value())
    return Status::failure(ESTALE, path + " was replaced while QEMU started; try again");
  return disk;
}

Status Machine::prepare_save(DeviceStateFile& state) {
  PAWL_TRY(state.rewind());
  qmp_.forget_events();
  return qmp_.ask("getfd", {{"fdname", kStateName}}, kQemuAnswerMsMax, state.descriptor()).status();
}

Status Machine::await_migration(std::uint64_t after_event, int wait_ms) {
  const Deadline deadline(wait_ms);
  for (;;) {
    Result<Qmp::Event> told = qmp_.event("MIGRATION", after_event, deadline.left_ms());
    if (!told.ok()) return told.status();
    after_event = told.value().number;
    const std::string status = Qmp::text_in(Qmp::part_in(told.value().event, "data"), "status");
    if (status == "completed") return {};
    if (status == "failed" || status == "cancelled") {
      Result<QmpJson> asked = qmp_.ask("query-migrate", QmpJson(), kQemuAnswerMsMax);
      const std::string reason =
          asked.ok() ? Qmp::text_in(asked.value(), "error-desc", "QEMU gave no reason")
                     : asked.status().text();
      return Status::failure(EBADMSG, reason);
    }
  }
}

Result<Machine::SavedWhen> Machine::save(const FailurePoint& failure) {
  // All at once: QEMU begins the second when it has done the first.  What the machine consists of
  // is asked while it writes, when it lets nobody change that any more.
  const Result<std::uint64_t> stop = qmp_.send("stop", QmpJson());
  if (!stop.ok()) return stop.status();
  const Result<std::uint64_t> migrate =
      qmp_.send("migrate", {{"uri", std::string("fd:") + kStateName}});
  if (!migrate.ok()) return migrate.status();
  PAWL_TRY(ask_for_parts());
  failure.reach(Step::kStopAsked, process_.number());
  PAWL_TRY(during(qmp_.answer(stop.value(), kQemuAnswerMsMax).status(),
                  "while the guest was to be stopped and its disks drained"));
  SavedWhen when{monotonic_ns(), 0};
  failure.reach(Step::kStopped, process_.number());
  constexpr const char* kWriting = "while it was to write the device state";
  PAWL_TRY(during(qmp_.answer(migrate.value(), kQemuAnswerMsMax).status(), kWriting));
  last_event_ = qmp_.last_event_before_answer();
  PAWL_TRY(during(await_migration(last_event_, kQemuAnswerMsMax), kWriting));
  when.written_ns = monotonic_ns();
  failure.reach(Step::kDeviceStateWritten, process_.number());
  return when;
}

Status Machine::is_still_the_same() {
  const Result<std::set<std::string>> found = parts();
  if (!found.ok()) return found.status();
  return compare_parts(parts_begun_, found.value());
}

Result<std::uint64_t> Machine::streamed_memory_bytes() {
  Result<QmpJson> told = qmp_.ask("query-migrate", QmpJson(), kQemuAnswerMsMax);
  if (!told.ok()) return told.status();
  const std::int64_t bytes = Qmp::number_in(Qmp::part_in(told.value(), "ram"), "total");
  return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
}

bool Machine::has_run_on() {
  qmp_.hear_last_words();
  return is_known_to_run_on();
}

void Machine::give_up_save() {
  // It does nothing where there is nothing to give up; what cannot be given up ends with QEMU.
  (void)qmp_.ask("migrate_cancel", QmpJson(), kQemuAnswerMsMax);
}

Status Machine::load(DeviceStateFile& state, const FailurePoint& failure) {
  PAWL_TRY(state.rewind());
  PAWL_TRY(
      qmp_.ask("getfd", {{"fdname", kStateName}}, kQemuAnswerMsMax, state.descriptor()).status());
  PAWL_TRY(
      qmp_.ask("migrate-incoming", {{"uri", std::string("fd:") + kStateName}}, kQemuAnswerMsMax)
          .status());
  last_event_ = qmp_.last_event_before_answer();
  failure.reach(Step::kLoading, process_.number());
  return await_migration(0, kQemuLoadMsMax);
}

Status Machine::go_on() {
  // QEMU tells of a migration's end a moment before it takes this command again.
  const Deadline deadline(kQemuAnswerMsMax);
  for (;;) {
    const Status asked = go_on_now();
    if (asked.ok() || asked.error_number() != EIO || deadline.passed()) return asked;
    ::nanosleep(&kGoOnPause, nullptr);
  }
}

}  // namespace pawl::wsp::vm
