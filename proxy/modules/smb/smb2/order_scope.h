// SPDX-License-Identifier: Apache-2.0
// Which earlier promises a request must wait for, judged by the request alone (far_order.h has the rules).
#pragma once
#include <cstdint>

#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

struct OrderScope {
  enum class Kind : std::uint8_t { nothing, range, file, everything };
  Kind kind = Kind::everything;
  FileGroupRef file;  // null: everything
  std::uint64_t offset = 0, length = 0;

  // Whether it waits for all earlier requests, and all later ones wait for it.
  bool is_barrier() const { return kind == Kind::everything || !file || file->is_any(); }
};
// For a request that the connection has tracked.
OrderScope order_scope_of(const Message& message, Connection& connection);

}  // namespace longhaul::smb::smb2
