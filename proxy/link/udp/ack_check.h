// SPDX-License-Identifier: Apache-2.0
// Checks the plausibility of an ACK: errors of a peer that has the right key but breaks the protocol.
#pragma once
#include "codecs/result.h"
#include "proxy/link/udp/packet_ack.h"

namespace longhaul::link::udp {

enum class AckError {
  never_sent = 1,  // a number that was never used
  malformed,       // ranges not descending, or empty
};
const boost::system::error_category& ack_category();
inline boost::system::error_code make_error_code(AckError error) {
  return {static_cast<int>(error), ack_category()};
}

// `next`: the lowest number that was not sent yet.
Result<void> check_ack(const PacketAck& ack, PacketNumber next);

}  // namespace longhaul::link::udp

template <>
struct boost::system::is_error_code_enum<longhaul::link::udp::AckError> : std::true_type {};
