// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/ack_check.h"

namespace longhaul::link::udp {
namespace {

class AckCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "longhaul.ack"; }
  std::string message(int value) const override {
    switch (static_cast<AckError>(value)) {
      case AckError::never_sent:
        return "the peer acknowledges a packet that was never sent";
      case AckError::malformed:
        return "the ranges of an acknowledgement are out of order";
    }
    return "unknown error";
  }
};

}  // namespace

const boost::system::error_category& ack_category() {
  static const AckCategory category;
  return category;
}

Result<void> check_ack(const PacketAck& ack, PacketNumber next) {
  if (ack.ranges.empty()) return AckError::malformed;
  if (ack.largest() >= next) return AckError::never_sent;
  for (std::size_t i = 0; i < ack.ranges.size(); ++i) {
    if (ack.ranges[i].first > ack.ranges[i].last) return AckError::malformed;
    if (i > 0 && ack.ranges[i].last + 1 >= ack.ranges[i - 1].first) return AckError::malformed;
  }
  return {};
}

}  // namespace longhaul::link::udp
