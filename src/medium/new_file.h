// A file that nobody sees before it is whole: it has no name, or a provisional one, until it is
// published.
#pragma once

#include <memory>
#include <string>

#include "medium/descriptor.h"
#include "medium/directory.h"

namespace pawl {

// What every provisional name begins with; the rest is drawn.
inline constexpr const char* kProvisionalPrefix = ".pawl-new-";
Result<std::string> draw_provisional_name();

// Within a directory, and never over another file: EEXIST as it comes.
Status rename_in(const Directory& directory, const std::string& from, const std::string& to);

class NewFile {
 public:
  // Makes an empty file in `directory`, which outlives it, that only its owner may read.  Without a
  // name, where the file system can (O_TMPFILE): then nothing is left of it when the process dies.
  static Result<NewFile> make(const Directory& directory);
  // The same, and never with a name: EOPNOTSUPP where the file system cannot.
  static Result<NewFile> make_nameless(const Directory& directory);
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // what was not published is removed

  DescriptorFile& file() { return *file_; }
  int descriptor() const { return file_->descriptor(); }
  // Gives the file up; the descriptor is the caller's.
  int release() { return file_->release(); }

  // Flushes the file and gives it the name `to`, a path in `directory`, durably.  EEXIST when there
  // is one of that name, unless it may be replaced.
  Status publish(const std::string& to, bool may_replace);
  // It has the name that publish() gave it, though that may have failed behind it.
  bool has_name() const { return has_name_; }

 private:
  NewFile(Descriptor descriptor, const Directory& directory, std::string provisional);
  Status take_name(const std::string& name) const;
  Status take_provisional_name();

  std::unique_ptr<DescriptorFile> file_;
  const Directory* directory_;
  std::string provisional_;  // empty: it has none
  bool has_name_ = false;
};

}  // namespace pawl
