// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/listens.h"

namespace longhaul::config {
namespace {

// "::" includes IPv4, as Linux does by default; an address of the other family never collides.
bool overlap(const HostPort& a, const HostPort& b) {
  if (a.port != b.port) return false;
  if (a.host == b.host || a.host == "::" || b.host == "::") return true;
  const bool a_v6 = a.host.find(':') != std::string::npos, b_v6 = b.host.find(':') != std::string::npos;
  return a_v6 == b_v6 && (a.host == "0.0.0.0" || b.host == "0.0.0.0");
}

}  // namespace

void Listens::add(const Section& section, Listen added) {
  for (const Listen& other : all_) {
    if (!overlap(other.at, added.at)) continue;
    const std::string where = other.line == 0 ? "" : " in line " + std::to_string(other.line);
    const std::string as = other.line == 0 ? "" : " as " + to_text(other.at);
    section.fail_plainly(added.line, added.who + " takes " + to_text(added.at) + ", which " + other.who +
                                         where + " already uses" + as + ".");
  }
  all_.push_back(std::move(added));
}

}  // namespace longhaul::config
