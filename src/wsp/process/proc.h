// Files of /proc/PID.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::wsp {

// Read whole, unless it `stops`, which is asked between the pieces; empty when there is none.
std::string read_proc(pid_t process, const std::string& name,
                      const std::function<bool()>& stops = {});
std::string read_proc_link(pid_t process, const std::string& name);
// Of a directory there that is open: of many files that saves finding it each time.
std::string read_proc_in(int directory, const std::string& name,
                         const std::function<bool()>& stops = {});
std::string read_proc_link_in(int directory, const std::string& name);
// What stands behind "FIELD:" in a text of lines, without blanks before it; empty when there is
// none.
std::string_view field_of(std::string_view text, std::string_view field);
std::uint64_t number_of(std::string_view text, int base = 10);
std::vector<std::uint64_t> numbers_of(std::string_view text, int base = 10);
// The numbers of /proc/PID/stat from the third field on (so that [0] is field 3, the state, as 0).
std::vector<std::uint64_t> parse_stat(std::string_view text);
std::vector<std::uint64_t> stat_fields(pid_t process);
// The soft and the hard limit of each kind, as getrlimit(2) counts them; false when the process is
// gone.
bool parse_limits(std::string_view text, std::span<std::uint64_t[2]> into);
bool read_limits(pid_t process, std::span<std::uint64_t[2]> into);
// The names in a directory that are numbers, in order.
std::vector<int> numbers_in(const std::string& directory);

}  // namespace pawl::wsp
