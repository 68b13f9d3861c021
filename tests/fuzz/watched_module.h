// SPDX-License-Identifier: Apache-2.0
// One half of the SMB module, held to the contract of modules.
#pragma once
#include "fuzz/choices.h"
#include "proxy/modules/smb/module.h"
#include "tests/proxy/modules/kit/watched.h"

namespace longhaul::fuzz {

class Watched : public kit::Watched {
 public:
  explicit Watched(smb::Side side, std::uint16_t port = 445)
      : kit::Watched(std::make_unique<smb::SmbModule>(side, modules::Ends{.server_port = port}, smb::Site{})) {}
};

}  // namespace longhaul::fuzz
