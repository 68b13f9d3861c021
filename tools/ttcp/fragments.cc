// SPDX-License-Identifier: Apache-2.0
// See fragments.h.
#include "tools/ttcp/fragments.h"

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace longhaul::ttcp {
namespace {

std::string read_all(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t to_count(const std::string& text) {
  try {
    return std::stoull(text);
  } catch (const std::exception&) {  // a counter that is none counts nothing
    return 0;
  }
}

}  // namespace

Fragments parse_fragments(std::string_view snmp, std::string_view snmp6) {
  std::map<std::string, std::uint64_t> found;
  // "Ip: name name …", then "Ip: value value …"
  std::istringstream lines{std::string(snmp)};
  std::string line;
  std::string values;
  while (std::getline(lines, line)) {
    if (!line.starts_with("Ip: ") || !std::getline(lines, values)) continue;
    std::istringstream names_in{line};
    std::istringstream values_in{values};
    std::string name;
    std::string value;
    while (names_in >> name && values_in >> value) found[name] += to_count(value);
    break;
  }
  std::istringstream lines6{std::string(snmp6)};
  std::string name;
  std::string value;
  while (lines6 >> name >> value)
    if (name.starts_with("Ip6")) found[name.substr(3)] += to_count(value);
  return {found["FragCreates"], found["ReasmReqds"], found["ReasmFails"]};
}

Fragments read_fragments() {
  // The thread's, since a test may have put it into a namespace of its own.
  return parse_fragments(read_all("/proc/thread-self/net/snmp"), read_all("/proc/thread-self/net/snmp6"));
}

Fragments operator-(const Fragments& after, const Fragments& before) {
  const auto grown = [](std::uint64_t now, std::uint64_t then) { return now > then ? now - then : 0; };
  return {grown(after.created, before.created), grown(after.received, before.received),
          grown(after.failed, before.failed)};
}

}  // namespace longhaul::ttcp
