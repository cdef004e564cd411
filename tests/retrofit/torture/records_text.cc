#include "torture/records_text.h"

#include <string>

namespace pawl::retrofit {

void write_records(const Model& records, std::ostream& out) {
  for (const auto& [key, value] : records) out << key << '\t' << value << '\n';
}

Model read_records(std::istream& in) {
  Model records;
  for (std::string line; std::getline(in, line);) {
    const std::size_t tab = line.find('\t');
    if (tab != std::string::npos) records[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return records;
}

}  // namespace pawl::retrofit
