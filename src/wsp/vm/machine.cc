#include "wsp/vm/machine.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "wsp/clock.h"
#include "wsp/vm/marker.h"

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

// A question of what the machine consists of: a list, of which each part is put into words.
struct PartQuery {
  const char* command;
  QmpJson (*arguments)();
  std::string (*in_words)(const QmpJson& part);
};

std::string node_in_words(const QmpJson& node) {
  return "the node " + node.value("node-name", "") + " (" + node.value("drv", "") + ", " +
         node.value("file", "") + ", upon \"" + node.value("backing_file", "") + "\", depth " +
         std::to_string(node.value("backing_file_depth", 0)) + ")";
}

std::string disk_in_words(const QmpJson& disk) {
  const QmpJson inserted = disk.value("inserted", QmpJson::object());
  return "the disk " + disk.value("device", "") + disk.value("qdev", "") + " with the node " +
         inserted.value("node-name", "none");
}

std::string device_in_words(const QmpJson& device) {
  return "the device " + device.value("name", "") + " (" + device.value("type", "") + ")";
}

// Each node by itself, or QEMU would tell of all that are below it every time.
QmpJson flat() { return {{"flat", true}}; }
QmpJson nothing() { return {}; }
QmpJson of_named_devices() { return {{"path", "/machine/peripheral"}}; }
QmpJson of_nameless_devices() { return {{"path", "/machine/peripheral-anon"}}; }

// Processors and memory that are plugged in are devices too.
constexpr std::array kPartQueries{
    PartQuery{"query-named-block-nodes", flat, node_in_words},
    PartQuery{"query-block", nothing, disk_in_words},
    PartQuery{"qom-list", of_named_devices, device_in_words},
    PartQuery{"qom-list", of_nameless_devices, device_in_words},
};

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
  return Status::failure(status.error_number(), status.text() + ", " + what);
}

// Block drivers that are a file or a disk of the host's, and those that keep nothing.
bool is_host_file(const std::string& driver) { return driver == "file" || driver == "host_device"; }

bool is_without_storage(const std::string& driver) {
  return driver == "null-co" || driver == "null-aio";
}

// Drivers that hand on to another node.
bool is_on_another(const QmpJson& node) {
  constexpr std::array kFormats{"raw",      "qcow2",        "qcow", "qed", "vdi", "vmdk",
                                "throttle", "copy-on-read", "luks", "vpc", "vhdx"};
  const std::string driver = node.value("drv", "");
  return std::find(kFormats.begin(), kFormats.end(), driver) != kFormats.end();
}

}  // namespace

Result<Machine> Machine::start(const MachineDescription& description,
                               const std::string& memory_path, int lock, Start start) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return FailedCall{errno, "cannot make a line to QEMU"};
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  Result<QemuProcess> process = QemuProcess::start(
      command_line(description, memory_path, theirs.get(), start), {theirs.get(), lock});
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
  const QmpJson number = version.value().value("qemu", QmpJson::object());
  version_ = std::to_string(number.value("major", 0)) + '.' +
             std::to_string(number.value("minor", 0)) + '.' +
             std::to_string(number.value("micro", 0)) + ' ' + version.value().value("package", "");
  version_.resize(std::min(version_.size(), kVersionTextBytes - 1));
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
  for (const PartQuery& query : kPartQueries) {
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
  for (const PartQuery& query : kPartQueries) {
    const Result<QmpJson> told = qmp_.answer(number++, kQemuAnswerMsMax);
    if (!told.ok()) return told.status();
    for (const QmpJson& part : told.value()) found.insert(query.in_words(part));
  }
  return found;
}

Result<std::vector<std::string>> Machine::disk_files() {
  Result<QmpJson> nodes = qmp_.ask("query-named-block-nodes", {{"flat", true}}, kQemuAnswerMsMax);
  if (!nodes.ok()) return nodes.status();
  std::vector<std::string> files;
  for (const QmpJson& node : nodes.value()) {
    const std::string driver = node.value("drv", "");
    if (is_without_storage(driver)) continue;
    std::string file = node.value("file", "");
    if (node.value("cache", QmpJson::object()).value("no-flush", false)) {
      return Status::failure(ENOTSUP,
                             "the disk " + file +
                                 " is not flushed (cache=unsafe): what the guest takes for "
                                 "durable would be lost with the host");
    }
    if (is_on_another(node)) continue;
    if (!is_host_file(driver)) {
      return Status::failure(ENOTSUP, "the disk " + file + " (" + driver +
                                          ") is no file of this machine: whether it was changed "
                                          "after a save cannot be known");
    }
    // A restore, or a look at it, may be asked for from elsewhere.
    if (!file.empty()) file = std::filesystem::absolute(file).string();
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
  }
  if (files.size() > kDisksMax) {
    return Status::failure(ENOTSUP, "the machine has more than " + std::to_string(kDisksMax) +
                                        " files of disks, backing files and CDs among them");
  }
  std::sort(files.begin(), files.end());
  return files;
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
    const std::string status = told.value().event["data"].value("status", "");
    if (status == "completed") return {};
    if (status == "failed" || status == "cancelled") {
      Result<QmpJson> asked = qmp_.ask("query-migrate", QmpJson(), kQemuAnswerMsMax);
      const std::string reason = asked.ok()
                                     ? asked.value().value("error-desc", "QEMU gave no reason")
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
  return told.value().value("ram", QmpJson::object()).value("total", std::uint64_t{0});
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
