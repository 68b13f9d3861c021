// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/negotiated.h"

#include <algorithm>

namespace longhaul::smb::smb2 {

void Negotiated::offered(const NegotiateRequest& request) {
  client_has_channels_ = request.capabilities & capabilities::multi_channel;
}

void Negotiated::chosen(const NegotiateResponse& response) {
  if (response.dialect == Dialect::wildcard) return;
  dialect_ = response.dialect;
  multi_credit_ = response.multi_credit();
  multi_channel_ = client_has_channels_ && dialect_ >= Dialect::smb_3_0 &&
                   (response.capabilities & capabilities::multi_channel);
  max_read_bytes_ = std::min(response.max_read_bytes, kLargestTransfer);
  max_write_bytes_ = std::min(response.max_write_bytes, kLargestTransfer);
  max_transact_bytes_ = std::min(response.max_transact_bytes, kLargestTransfer);
}

}  // namespace longhaul::smb::smb2
