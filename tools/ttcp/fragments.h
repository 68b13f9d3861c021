// SPDX-License-Identifier: Apache-2.0
// The kernel's counters of IP fragments, of this network namespace as a whole: other traffic's are in them.
#pragma once
#include <string_view>

#include "tools/ttcp/row.h"

namespace longhaul::ttcp {

Fragments read_fragments();  // zeros where /proc is not there
Fragments operator-(const Fragments& after, const Fragments& before);

// The texts of /proc/net/snmp and snmp6.
Fragments parse_fragments(std::string_view snmp, std::string_view snmp6);

}  // namespace longhaul::ttcp
