// SPDX-License-Identifier: Apache-2.0
// The addresses and ports on which the daemon listens, which must not collide. Ports in use by other programs
// are detected when they are bound.
#pragma once
#include <string>
#include <vector>

#include "proxy/config/host_port.h"
#include "proxy/config/section.h"

namespace longhaul::config {

struct Listen {
  HostPort at;
  std::string who;   // for the message: "[socks] listen"
  std::size_t line;  // 0 for a default that is not in the file
};

class Listens {
 public:
  // Fails and names both places if `added` collides with an earlier one.
  void add(const Section& section, Listen added);

 private:
  std::vector<Listen> all_;
};

}  // namespace longhaul::config
