#include "torture/evidence.h"

#include <sys/xattr.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "medium/block_medium.h"
#include "pawl/pawl.h"

namespace pawl::test {
namespace {

constexpr const char* kFile = "data";
constexpr const char* kHistory = "history.json";
constexpr const char* kStart = "start";

std::string in(const std::string& directory, const std::string& name) {
  return directory + "/" + name;
}

void set_mark(const std::string& path, const std::string& mark) {
  if (::setxattr(path.c_str(), kMarkAttribute, mark.data(), mark.size(), 0) != 0)
    throw std::runtime_error("cannot mark " + path + ": " + std::strerror(errno));
}

}  // namespace

std::optional<std::string> mark_of(const std::string& path) {
  std::array<char, 8192> value;
  const ssize_t length = ::getxattr(path.c_str(), kMarkAttribute, value.data(), value.size());
  if (length < 0) return std::nullopt;
  return std::string(value.data(), static_cast<std::size_t>(length));
}

Evidence take_evidence(const std::string& path, const Oracle& oracle) {
  Evidence evidence;
  evidence.history = oracle.history();
  evidence.workload = oracle.workload().name;
  evidence.file = Content::load_from(path);
  const std::string journal = path + kJournalSuffix;
  if (std::filesystem::exists(journal)) evidence.journal = Content::load_from(journal);
  evidence.mark = mark_of(path);
  return evidence;
}

void keep(const Evidence& evidence, const std::string& directory) {
  std::filesystem::create_directories(directory);
  nlohmann::json history = {{"workload", evidence.workload},
                            {"seed", evidence.history.seed},
                            {"begun", evidence.history.begun},
                            {"acknowledged", evidence.history.acknowledged}};
  if (evidence.mark.has_value()) history["mark"] = *evidence.mark;
  std::ofstream(in(directory, kHistory)) << history.dump(2) << '\n';
  evidence.history.start.save_as(in(directory, kStart));
  evidence.file.save_as(in(directory, kFile));
  if (evidence.journal.has_value())
    evidence.journal->save_as(in(directory, kFile) + kJournalSuffix);
}

std::optional<std::string> audit_kept(const std::string& directory) {
  const auto history = nlohmann::json::parse(std::ifstream(in(directory, kHistory)));
  const std::string name = history.at("workload");
  const Workload* const workload = find_workload(name);
  if (workload == nullptr) throw std::runtime_error("there is no workload " + name);
  Oracle oracle(*workload, {Content::load_from(in(directory, kStart)), history.at("seed"),
                            history.at("begun"), history.at("acknowledged")});

  const std::string copies = in(directory, "copy");
  std::filesystem::remove_all(copies);
  std::filesystem::create_directory(copies);
  const std::string file = in(copies, kFile);
  std::filesystem::copy_file(in(directory, kFile), file);
  const std::string journal = in(directory, kFile) + kJournalSuffix;
  if (std::filesystem::exists(journal)) std::filesystem::copy_file(journal, file + kJournalSuffix);
  if (history.contains("mark")) set_mark(file, history.at("mark"));
  if (pawl_recover(file.c_str()) < 0) return std::string("no recovery: ") + pawl_last_error();
  return oracle.find(Content::load_from(file));
}

}  // namespace pawl::test
