// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/may_be_promised.h"

#include "proxy/modules/promises/size_limit.h"

namespace longhaul::smb::smb2 {

bool may_be_promised(const Open& open, const Tree& tree, const Header& header, const WriteRequest& request,
                     const Negotiated& negotiated) {
  // No other client may read or write the file before we are notified.
  if (!(open.caching & lease_state::write) || open.break_pending || open.settled) return false;
  // After a reset the client would reconnect a durable handle and never be informed of a loss.
  if (open.durable) return false;
  // A plain file, written through this open from its first byte to its last on this connection.
  if (!open.disk_file || open.directory || open.unnamed || open.closing) return false;
  if (open.reconnected || open.replayed || open.is_locked()) return false;
  if (!(open.access & access::write_data) || open.write_through()) return false;
  if (tree.type != ShareType::disk || (tree.capabilities & share_capabilities::continuous_availability))
    return false;
  // The request itself is ordinary.
  if (header.is_signed() || header.is_async() || header.is_related() || header.is_replay() ||
      header.channel_sequence != 0)
    return false;
  // Complete, and such that the server has no reason of its own to refuse it.
  if (request.channel != 0 || request.flags != 0) return false;
  if (request.data.empty() || request.data.size() > negotiated.max_write_bytes()) return false;
  const auto length = static_cast<std::uint32_t>(request.data.size());
  if (negotiated.multi_credit() ? header.charge() < charge_for(length) : length > kCreditBytes) return false;
  return ends_within_limits(request.offset, length, open.confirmed_bytes);
}

}  // namespace longhaul::smb::smb2
