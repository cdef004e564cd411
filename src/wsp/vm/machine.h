// A QEMU whose guest can be saved without its memory, and restored.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "medium/status.h"
#include "wsp/vm/description.h"
#include "wsp/vm/device_state.h"
#include "wsp/vm/directory.h"
#include "wsp/vm/file_identity.h"
#include "wsp/vm/options.h"
#include "wsp/vm/qemu_process.h"
#include "wsp/vm/qmp.h"
#include "wsp/vm/steps.h"

namespace pawl::wsp::vm {

inline constexpr int kQemuStartMsMax = 20'000;
inline constexpr int kQemuAnswerMsMax = 10'000;
inline constexpr int kQemuLoadMsMax = 30'000;

class Machine {
 public:
  // Starts QEMU; the guest does not run yet.  Its memory is the file in `files`.  `lock` is handed
  // to QEMU too.
  static Result<Machine> start(const MachineDescription& description, const MachineDirectory& files,
                               int lock, Start start);

  // "7.2.22 (Debian ...)", cut to what a marker has room for.
  const std::string& version() const { return version_; }

  // The files of the guest's disks, as QEMU lists them: those that it only reads (a backing file, a
  // CD) too, for the guest has some of them in its memory.  ENOTSUP, with the disk's name, where
  // one is no file (NBD, Ceph, ...), for whether that was changed cannot be known, or is never
  // flushed.
  Result<std::vector<std::string>> disk_files();

  // What such a file is.  ESTALE: QEMU has another one open, which the name led to then.
  Result<FileIdentity> identify_disk(const std::string& path) const;

  // Hands the file over.  A failure has QEMU's reason: a device that cannot be migrated.
  Status prepare_save(DeviceStateFile& state);

  struct SavedWhen {
    std::uint64_t stopped_ns;  // CLOCK_MONOTONIC: the guest stands still, its disks are flushed
    std::uint64_t written_ns;  // QEMU has written the device state
  };
  // After prepare_save().  Stops the guest and has its device state written.
  Result<SavedWhen> save(const FailurePoint& failure);

  // After save(), which has asked already.  ESTALE where somebody, over a monitor of the user's,
  // has plugged something in or out, or put another file below a disk: a machine that is started
  // with the same options would be another one.
  Status is_still_the_same();

  // After save(): how much of the memory is not in the machine's file, that of graphics cards and
  // the firmware's, which is a part of the device state.
  Result<std::uint64_t> streamed_memory_bytes();

  // After save() or load(): whether the guest has been let run since, as far as QEMU has told.  It
  // tells before it does so; of a QEMU that has ended all of it is known.
  bool has_run_on();
  // As has_run_on(), by what was heard until now.
  bool is_known_to_run_on() const { return qmp_.has_heard("RESUME", last_event_); }

  // After a save() that failed: what QEMU still does of it is given up.
  void give_up_save();

  // Instead of prepare_save(), in a QEMU that was started for it.  EBADMSG: QEMU refuses the state;
  // EPIPE: it ended, or was killed; ETIMEDOUT: it did neither within kQemuLoadMsMax.
  Status load(DeviceStateFile& state, const FailurePoint& failure);

  // Lets the guest run: for the first time, or on.  What hinders QEMU may pass: tries for
  // kQemuAnswerMsMax, or once.
  Status go_on();
  Status go_on_now() { return qmp_.ask("cont", Qmp::Json(), kQemuAnswerMsMax).status(); }

  QemuProcess& process() { return process_; }
  Qmp& qmp() { return qmp_; }

 private:
  Machine(QemuProcess process, Qmp qmp) : process_(std::move(process)), qmp_(std::move(qmp)) {}
  Status set_up();
  Status await_migration(std::uint64_t after_event, int wait_ms);
  Status ask_for_parts();
  Result<std::set<std::string>> parts();

  QemuProcess process_;
  Qmp qmp_;
  std::string version_;
  std::set<std::string> parts_begun_;  // what it consists of, in words; as it was started
  std::uint64_t first_part_query_ = 0;
  std::uint64_t last_event_ = 0;  // before the device state was begun
};

}  // namespace pawl::wsp::vm
