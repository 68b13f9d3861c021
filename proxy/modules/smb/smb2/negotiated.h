// SPDX-License-Identifier: Apache-2.0
// What client and server of a connection have agreed on by NEGOTIATE: the dialect, and what it allows.
#pragma once
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::smb2 {

class Negotiated {
 public:
  void offered(const NegotiateRequest& request);
  // The server has chosen one dialect. An answer with the wildcard announces another NEGOTIATE.
  void chosen(const NegotiateResponse& response);

  Dialect dialect() const { return dialect_; }
  // A request may take several ids, and so carry more than 64 KiB.
  bool multi_credit() const { return multi_credit_; }
  // Both sides have announced that a session may use several connections.
  bool multi_channel() const { return multi_channel_; }
  std::uint32_t max_read_bytes() const { return max_read_bytes_; }
  std::uint32_t max_write_bytes() const { return max_write_bytes_; }
  std::uint32_t max_transact_bytes() const { return max_transact_bytes_; }

  // Nothing larger fits a frame (frames.h), whatever a server announces.
  static constexpr std::uint32_t kLargestTransfer = 8 << 20;

 private:
  Dialect dialect_ = Dialect::none;
  bool multi_credit_ = false;
  bool multi_channel_ = false, client_has_channels_ = false;
  std::uint32_t max_read_bytes_ = 64 << 10, max_write_bytes_ = 64 << 10, max_transact_bytes_ = 64 << 10;
};

}  // namespace longhaul::smb::smb2
