#include "wsp/vm/saver.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>
#include <ctime>

#include <cerrno>

#include "wsp/clock.h"

namespace pawl::wsp::vm {

namespace {

double us_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1000 : 0;
}

std::uint64_t wall_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// A file that was put in the place of one that QEMU has open is not what the guest knows.
Status check_still(const FileIdentity& found, const FileIdentity& begun, const std::string& path) {
  if (found.is_same_file_grown(begun)) return {};
  return Status::failure(ESTALE, path + " was replaced by another file while the guest ran");
}

Status run_on_by_others() {
  return Status::failure(ESTALE, "somebody has let the guest run on after it was stopped");
}

}  // namespace

Status seal_memory(const MachineDirectory& directory, Marker& marker) {
  const std::string path = directory.path_of(kMemoryFile);
  const Result<Descriptor> memory = directory.files().open_file(kMemoryFile, O_RDONLY | O_NOATIME);
  if (!memory.ok()) return memory.status();
  const int number = memory.value().get();
  PAWL_TRY(arm_access_time(number, path));
  Result<FileIdentity> found = identify_open(number, path);
  if (!found.ok()) return found.status();
  // The marker is not to know times that the host's death can take back.
  if (::fsync(number) != 0) return FailedCall{errno, "cannot flush " + path};
  marker.memory = found.value();
  marker.state = MarkerState::kSealed;
  return {};
}

Result<Saver> Saver::open(const MachineDirectory& directory, MarkerFile& marker, Machine& machine,
                          const MachineDescription& description, std::uint64_t generation,
                          std::uint32_t description_checksum) {
  Result<DeviceStateFile> state = DeviceStateFile::open_for_saves(directory);
  if (!state.ok()) return state.status();
  Result<MarkerFile> rehearsal = MarkerFile::open(directory, kRehearsalMarkerFile);
  if (!rehearsal.ok()) return rehearsal.status();
  // It is read for a sample; that is no use of it that anyone should see afterwards.
  Result<Descriptor> memory = directory.files().open_file(kMemoryFile, O_RDONLY | O_NOATIME);
  if (!memory.ok()) return memory.status();
  Saver made(machine, std::move(state.value()), marker, std::move(rehearsal.value()),
             std::move(memory.value()));
  made.memory_directory_ = &directory;
  made.memory_bytes_ = description.memory_bytes;
  made.disk_files_ = description.disk_files;
  Result<FileIdentity> found_memory =
      identify_open(made.memory_.get(), directory.path_of(kMemoryFile));
  if (!found_memory.ok()) return found_memory.status();
  made.memory_begun_ = found_memory.value();
  for (const std::string& path : description.disk_files) {
    Result<FileIdentity> disk = machine.identify_disk(path);
    if (!disk.ok()) return disk.status();
    made.disks_begun_.push_back(disk.value());
  }
  made.marker_.state = MarkerState::kSaved;
  made.marker_.generation = generation;
  made.marker_.description_checksum = description_checksum;
  made.marker_.qemu_version = machine.version();
  // Whatever it holds, its next slot is known before a save.
  PAWL_TRY(made.rehearsal_file_.clear(generation));
  return made;
}

Status Saver::reserve() {
  const Result<std::uint64_t> bytes = machine_->streamed_memory_bytes();
  if (!bytes.ok()) return bytes.status();
  return state_.reserve(bytes.value());
}

Status Saver::prepare() {
  PAWL_TRY(forget_earlier());
  return hand_over();
}

Status Saver::bind(const FailurePoint& failure) {
  if (::getrandom(&marker_.save_id, sizeof marker_.save_id, GRND_NONBLOCK) !=
      ssize_t{sizeof marker_.save_id})
    return FailedCall{errno, "cannot draw the save's number"};
  Result<std::uint64_t> bytes = state_.stream_bytes();
  if (!bytes.ok()) return bytes.status();
  marker_.device_state_bytes = bytes.value();
  Result<std::uint32_t> sum = state_.stream_checksum(bytes.value());
  if (!sum.ok()) return sum.status();
  marker_.device_state_checksum = sum.value();
  PAWL_TRY(state_.write_header({marker_.generation, marker_.save_id}));
  PAWL_TRY(state_.flush());
  failure.reach(Step::kDeviceStateBound, machine_->process().number());
  Result<std::uint32_t> sample = sample_checksum(memory_.get(), memory_bytes_, marker_.save_id);
  if (!sample.ok()) return sample.status();
  marker_.memory_sample_checksum = sample.value();
  Result<FileIdentity> memory = identify_memory(*memory_directory_);
  if (!memory.ok()) return memory.status();
  PAWL_TRY(check_still(memory.value(), memory_begun_, memory_directory_->path_of(kMemoryFile)));
  marker_.memory = memory.value();
  marker_.disks.clear();
  for (std::size_t i = 0; i < disk_files_.size(); ++i) {
    Result<FileIdentity> disk = identify(disk_files_[i]);
    if (!disk.ok()) return disk.status();
    PAWL_TRY(check_still(disk.value(), disks_begun_[i], disk_files_[i]));
    marker_.disks.push_back(disk.value());
  }
  marker_.saved_at_ns = wall_clock_ns();
  return {};
}

Result<SaveTiming> Saver::save_into(MarkerFile& file, std::uint64_t heard_ns,
                                    const FailurePoint& failure) {
  failure.reach(Step::kSaveBegins, machine_->process().number());
  const std::uint64_t begun_ns = monotonic_ns();
  Result<Machine::SavedWhen> when = machine_->save(failure);
  if (!when.ok()) return when.status();
  PAWL_TRY(bind(failure));
  // QEMU has answered meanwhile.
  PAWL_TRY(machine_->is_still_the_same());
  if (machine_->is_known_to_run_on()) return run_on_by_others();
  if (failure.is_at(Step::kMarkerTorn)) {
    PAWL_TRY(file.write(marker_, true));
    failure.reach(Step::kMarkerTorn, machine_->process().number());
  }
  PAWL_TRY(file.write(marker_));
  const std::uint64_t marked_ns = monotonic_ns();
  failure.reach(Step::kMarkerWritten, machine_->process().number());
  return SaveTiming{
      {{"hear of the failure", us_between(heard_ns, begun_ns)},
       {"stop the guest and drain its disks", us_between(begun_ns, when.value().stopped_ns)},
       {"write the device state", us_between(when.value().stopped_ns, when.value().written_ns)},
       {"bind and mark", us_between(when.value().written_ns, marked_ns)}}};
}

Result<SaveTiming> Saver::save(std::uint64_t heard_ns, const FailurePoint& failure) {
  return save_into(*marker_file_, heard_ns, failure);
}

Status Saver::seal(const FailurePoint& failure) {
  PAWL_ASSERT(marker_.save_id != 0);
  machine_->process().kill_now();
  machine_->process().wait();
  if (machine_->has_run_on()) {
    PAWL_TRY(marker_file_->clear(marker_.generation));
    return run_on_by_others();
  }
  failure.reach(Step::kQemuEnded, 0);
  for (const std::string& disk : disk_files_) PAWL_TRY(flush_times(disk));
  PAWL_TRY(seal_memory(*memory_directory_, marker_));
  PAWL_TRY(marker_file_->write(marker_));
  failure.reach(Step::kSealed, 0);
  return {};
}

Status Saver::go_on_at_last() {
  if (!stands_still_) return {};
  const Status runs = machine_->go_on_now();
  stands_still_ = !runs.ok();
  return runs;
}

Result<SaveTiming> Saver::try_save() {
  return save_into(rehearsal_file_, monotonic_ns(), FailurePoint());
}

Status Saver::go_on() {
  const Status runs = machine_->go_on();
  stands_still_ = !runs.ok();
  Status prepared = prepare();
  PAWL_TRY(runs);
  return prepared;
}

Result<SaveTiming> Saver::rehearse() {
  Result<SaveTiming> timing = try_save();
  // The guest is stopped, however far that has come; and the next save may succeed.
  if (!timing.ok()) machine_->give_up_save();
  const Status goes_on = go_on();
  if (!timing.ok()) return timing;
  PAWL_TRY(goes_on);
  return timing;
}

}  // namespace pawl::wsp::vm
