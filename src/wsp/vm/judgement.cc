#include "wsp/vm/judgement.h"

#include <fcntl.h>

#include <cerrno>

#include "wsp/vm/device_state.h"

namespace pawl::wsp::vm {

namespace {

// A refusal with its reason, or nothing to object to.
struct Objection {
  Refusal refusal = Refusal::kNone;
  std::string reason;
};

Objection object(Refusal refusal, std::string reason) { return {refusal, std::move(reason)}; }

// What was looked at, and is not what it was; any other failure says nothing about the save.
Result<Objection> object_if(bool is_found, Refusal refusal, const Status& failure) {
  if (!is_found) return failure;
  return object(refusal, failure.text());
}

Objection judge_no_save(const MachineDirectory& directory, std::uint64_t generation) {
  const Result<DeviceStateFile> state = DeviceStateFile::open_saved(directory);
  if (state.ok()) {
    const Result<bool> begun = state.value().has_stream();
    const Result<DeviceStateHeader> header = state.value().read_header();
    // A whole one of an earlier generation was restored.
    const bool is_earlier = header.ok() && header.value().generation < generation;
    if (begun.ok() && begun.value() && !is_earlier)
      return object(Refusal::kHalfSave, "a save was begun, and did not end in time");
  }
  return object(Refusal::kNoSave, "nothing was saved since the guest last ran");
}

Result<Objection> judge_device_state(const MachineDirectory& directory, const Marker& marker) {
  const Result<DeviceStateFile> state = DeviceStateFile::open_saved(directory);
  if (!state.ok()) {
    return object_if(state.status().error_number() == ENOENT, Refusal::kDamagedDeviceState,
                     state.status());
  }
  const Result<DeviceStateHeader> header = state.value().read_header();
  if (!header.ok()) {
    return object_if(header.status().error_number() == EBADMSG, Refusal::kDamagedDeviceState,
                     header.status());
  }
  if (header.value().generation != marker.generation || header.value().save_id != marker.save_id) {
    return object(Refusal::kOtherGeneration,
                  "the device state is of generation " + std::to_string(header.value().generation) +
                      ", the marker of generation " + std::to_string(marker.generation) +
                      ", or they are of different saves: one of them was put back from a copy");
  }
  const Result<std::uint32_t> sum = state.value().stream_checksum(marker.device_state_bytes);
  if (!sum.ok()) {
    return object_if(sum.status().error_number() == EBADMSG, Refusal::kDamagedDeviceState,
                     sum.status());
  }
  if (sum.value() != marker.device_state_checksum)
    return object(Refusal::kDamagedDeviceState, "the device state is not what QEMU had written");
  return Objection{};
}

Result<Objection> judge_memory(const MachineDirectory& directory, const Marker& marker,
                               bool trusts) {
  const std::string path = directory.path_of(kMemoryFile);
  const Result<Descriptor> memory = directory.files().open_file(kMemoryFile, O_RDONLY | O_NOATIME);
  if (!memory.ok()) {
    return object_if(memory.status().error_number() == ENOENT, Refusal::kMemoryReplaced,
                     memory.status());
  }
  const Result<FileIdentity> found = identify_open(memory.value().get(), path);
  if (!found.ok()) return found.status();
  if (!found.value().is_same_file(marker.memory)) {
    return object(Refusal::kMemoryReplaced,
                  path + " is another file than the one that the guest had");
  }
  if (marker.state == MarkerState::kSealed && !trusts) {
    if (!found.value().is_unchanged(marker.memory))
      return object(Refusal::kMemoryTouched, path + " was changed since the save");
    if (found.value().accessed_ns != marker.memory.accessed_ns) {
      return object(Refusal::kMemoryTouched,
                    path +
                        " was read or mapped since the save, and a mapping may write without a "
                        "trace; if you know that it was only read, restore with --trust-memory");
    }
  }
  const Result<std::uint32_t> sample =
      sample_checksum(memory.value().get(), marker.memory.size_bytes, marker.save_id);
  if (!sample.ok()) return sample.status();
  if (sample.value() != marker.memory_sample_checksum)
    return object(Refusal::kMemoryTouched, path + " holds other bytes than it did");
  return Objection{};
}

Result<Objection> judge_disks(const std::vector<std::string>& paths, const Marker& marker) {
  if (paths.size() != marker.disks.size())
    return object(Refusal::kOtherOptions, "the machine has another number of disks");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Result<FileIdentity> found = identify(paths[i]);
    // One that is not there may come yet, with its file system; the guest is nothing without it.
    if (!found.ok()) {
      return object_if(found.status().error_number() == ENOTSUP, Refusal::kDiskReplaced,
                       found.status());
    }
    if (!found.value().is_same_file(marker.disks[i]))
      return object(Refusal::kDiskReplaced, paths[i] + " is another file than the guest's disk");
    if (marker.state == MarkerState::kSealed ? !found.value().is_unchanged(marker.disks[i])
                                             : !found.value().is_unchanged_since(marker.disks[i]))
      return object(Refusal::kDiskChanged, paths[i] + " was changed since the save");
  }
  return Objection{};
}

bool is_the_last_word(const Result<Objection>& found) {
  return !found.ok() || found.value().refusal != Refusal::kNone;
}

Result<Objection> judge_save(const MachineDirectory& directory, const Marker& marker,
                             const std::optional<MachineDescription>& description,
                             std::uint32_t description_checksum, const JudgementOptions& options) {
  if (Result<Objection> found = judge_device_state(directory, marker); is_the_last_word(found))
    return found;
  if (!description.has_value() || description_checksum != marker.description_checksum) {
    return object(Refusal::kOtherOptions,
                  directory.path_of(kDescriptionFile) + " is not what it was at the save");
  }
  if (options.wanted != nullptr && !description->is_same_machine(*options.wanted)) {
    return object(Refusal::kOtherOptions, "the machine that was saved is another one: " +
                                              description->difference_from(*options.wanted) + "; " +
                                              directory.path_of(kDescriptionFile) +
                                              " has all of it");
  }
  if (Result<Objection> found = judge_disks(description->disk_files, marker);
      is_the_last_word(found))
    return found;
  return judge_memory(directory, marker, options.trusts_memory);
}

}  // namespace

const char* name_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "valid";
    case Refusal::kNoSave:
      return "no-save";
    case Refusal::kHalfSave:
      return "half-save";
    case Refusal::kDamagedMarker:
      return "damaged-marker";
    case Refusal::kNewerFormat:
      return "newer-format";
    case Refusal::kOtherGeneration:
      return "other-generation";
    case Refusal::kDamagedDeviceState:
      return "damaged-device-state";
    case Refusal::kOtherOptions:
      return "other-options";
    case Refusal::kMemoryReplaced:
      return "memory-replaced";
    case Refusal::kMemoryTouched:
      return "memory-touched";
    case Refusal::kDiskReplaced:
      return "disk-replaced";
    case Refusal::kDiskChanged:
      return "disk-changed";
    case Refusal::kOtherQemu:
      return "other-qemu";
    case Refusal::kLoadFailed:
      return "load-failed";
  }
  return "unknown";
}

Result<Judgement> judge(const MachineDirectory& directory, MarkerFile& marker,
                        const JudgementOptions& options) {
  Judgement verdict;
  std::uint32_t description_checksum = 0;
  if (Result<StoredDescription> found = read_description(directory); found.ok()) {
    description_checksum = found.value().checksum;
    verdict.description = std::move(found.value().description);
  } else if (found.status().error_number() != ENOENT && found.status().error_number() != EINVAL) {
    verdict.unseen = found.status();
  }
  Objection objection;
  Result<Marker> read = marker.read();
  if (read.ok()) {
    verdict.marker = std::move(read.value());
    if (!verdict.marker.is_save()) {
      objection = judge_no_save(directory, verdict.marker.generation);
    } else if (verdict.unseen.ok()) {
      Result<Objection> found =
          judge_save(directory, verdict.marker, verdict.description, description_checksum, options);
      if (found.ok())
        objection = std::move(found.value());
      else
        verdict.unseen = found.status();
    }
  } else if (read.status().error_number() == ENODATA) {
    objection = object(Refusal::kNoSave, "nothing was ever saved in " + directory.path());
  } else if (read.status().error_number() == EBADMSG) {
    objection = object(Refusal::kDamagedMarker, read.status().text());
  } else if (read.status().error_number() == ENOTSUP) {
    objection = object(Refusal::kNewerFormat, read.status().text());
  } else {
    return read.status();
  }
  // What stays unseen counts only where a save hangs on it.
  if (!verdict.marker.is_save()) verdict.unseen = {};
  if (!verdict.unseen.ok()) {
    verdict.unseen = verdict.unseen.with_text(
        verdict.unseen.text() + " (the save stays valid; to boot without it, run --discard)");
  }
  verdict.refusal = objection.refusal;
  verdict.reason = std::move(objection.reason);
  return verdict;
}

}  // namespace pawl::wsp::vm
