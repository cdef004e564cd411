// Places for files: file systems made for the occasion, which only this process sees and which go
// with it, however it ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "medium/descriptor.h"

namespace pawl::test {

struct Place {
  std::string file_system;
  std::string directory;
  bool may_be_filled;  // it is ours alone
};

class FileSystems {
 public:
  // In a directory of its own under `scratch`.
  explicit FileSystems(const std::string& scratch);
  FileSystems(const FileSystems&) = delete;
  FileSystems& operator=(const FileSystems&) = delete;
  ~FileSystems();

  static const std::vector<std::string>& kinds();
  // False, with a reason in left_out(), when that cannot be had here.
  bool make(const std::string& kind);
  // The file system of `scratch` itself, or of another directory.
  void take_scratch();
  void take_directory(const std::string& directory);

  const std::vector<Place>& places() const { return places_; }
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  bool refuse(const std::string& kind, const std::string& reason);
  static std::string mount_image(const std::string& kind, const std::string& directory);

  std::string own_;
  std::string refusal_;  // why nothing can be mounted
  std::vector<Place> places_;
  std::vector<std::string> mounts_;
  std::vector<std::string> made_;
  std::vector<std::string> left_out_;
};

// Takes all free space of a file system until it goes.
class Filler {
 public:
  explicit Filler(const std::string& directory) : path_(directory + "/filler") {}
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;
  ~Filler() { free(); }
  // All but so many bytes.
  void fill(std::uint64_t left_bytes);
  void free();
  bool filled() const { return file_.valid(); }

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace pawl::test
