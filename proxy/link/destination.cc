// SPDX-License-Identifier: Apache-2.0
// The display text of a destination: in logs, in the control API and in refusals.
#include "proxy/link/destination.h"

namespace longhaul::link {

std::string Destination::to_text() const {
  const auto port_text = ":" + std::to_string(port);
  if (!host.empty()) return host + port_text;
  const auto text = address.to_string();
  return address.is_v6() ? "[" + text + "]" + port_text : text + port_text;
}

}  // namespace longhaul::link
