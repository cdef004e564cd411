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
    return Status::from_errno(errno, "cannot make a line to QEMU");
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  Result<QemuProcess> process = QemuProcess::start(
      command_line(description, memory_path, theirs.get(), start), {theirs.get(), lock});
  if (!process.ok()) return process.status();
  theirs.reset(-1);  // or its end would not be heard of
  Machine machine(std::move(process.value()), Qmp(std::move(ours)));
  PAWL_TRY(machine.set_up());
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
  return qmp_
      .ask("migrate-set-parameters",
           {{"max-bandwidth", kBytesPerSecondMax}, {"downtime-limit", kDowntimeMsMax}},
           kQemuAnswerMsMax)
      .status();
}

Result<std::vector<std::string>> Machine::disk_files() {
  Result<QmpJson> nodes = qmp_.ask("query-named-block-nodes", {{"flat", true}}, kQemuAnswerMsMax);
  if (!nodes.ok()) return nodes.status();
  std::vector<std::string> files;
  for (const QmpJson& node : nodes.value()) {
    const std::string driver = node.value("drv", "");
    if (is_without_storage(driver) || is_on_another(node)) continue;
    std::string file = node.value("file", "");
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
  PAWL_TRY(state.prepare());
  qmp_.forget_events();
  return qmp_.ask("getfd", {{"fdname", kStateName}}, kQemuAnswerMsMax, state.descriptor()).status();
}

Status Machine::await_migration(int wait_ms) {
  const Deadline deadline(wait_ms);
  for (;;) {
    Result<QmpJson> told = qmp_.event("MIGRATION", deadline.left_ms());
    if (!told.ok()) return told.status();
    const std::string status = told.value()["data"].value("status", "");
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
  // Both at once: QEMU begins the second when it has done the first.
  PAWL_TRY(qmp_.send("stop", QmpJson()));
  PAWL_TRY(qmp_.send("migrate", {{"uri", std::string("fd:") + kStateName}}));
  failure.reach(Step::kStopAsked, process_.number());
  Result<QmpJson> stopped = qmp_.answer(kQemuAnswerMsMax);
  if (!stopped.ok()) return stopped.status();
  SavedWhen when{monotonic_ns(), 0};
  failure.reach(Step::kStopped, process_.number());
  Result<QmpJson> begun = qmp_.answer(kQemuAnswerMsMax);
  if (!begun.ok()) return begun.status();
  PAWL_TRY(await_migration(kQemuAnswerMsMax));
  when.written_ns = monotonic_ns();
  failure.reach(Step::kDeviceStateWritten, process_.number());
  return when;
}

Status Machine::load(DeviceStateFile& state, const FailurePoint& failure) {
  PAWL_TRY(state.rewind());
  PAWL_TRY(
      qmp_.ask("getfd", {{"fdname", kStateName}}, kQemuAnswerMsMax, state.descriptor()).status());
  PAWL_TRY(
      qmp_.ask("migrate-incoming", {{"uri", std::string("fd:") + kStateName}}, kQemuAnswerMsMax)
          .status());
  failure.reach(Step::kLoading, process_.number());
  return await_migration(kQemuLoadMsMax);
}

Status Machine::go_on() {
  // QEMU tells of a migration's end a moment before it takes this command again.
  const Deadline deadline(kQemuAnswerMsMax);
  for (;;) {
    const Status asked = qmp_.ask("cont", QmpJson(), kQemuAnswerMsMax).status();
    if (asked.ok() || asked.error_number() != EIO || deadline.passed()) return asked;
    ::nanosleep(&kGoOnPause, nullptr);
  }
}

}  // namespace pawl::wsp::vm
