// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/types.h"

namespace longhaul::link {
namespace {

class Category : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "link"; }
  std::string message(int code) const override {
    switch (static_cast<LinkError>(code)) {
      case LinkError::malformed_frame:
        return "the peer sent a malformed frame";
      case LinkError::malformed_record:
        return "the peer sent a malformed stream record";
      case LinkError::frame_too_large:
        return "the peer sent a frame larger than the protocol allows";
      case LinkError::credit_exceeded:
        return "the peer sent more than the credit it was granted";
      case LinkError::too_fragmented:
        return "the peer sent a stream in too many out-of-order pieces";
      case LinkError::unknown_stream:
        return "the peer sent data for a stream that it cannot have opened";
      case LinkError::too_many_streams:
        return "the peer opened more streams than this side allows";
      case LinkError::version_mismatch:
        return "the peer speaks another version of the link protocol";
      case LinkError::control_overflow:
        return "the peer sent more control messages than this side can hold";
    }
    return "unknown link error";
  }
};

}  // namespace

const boost::system::error_category& link_category() {
  static const Category category;
  return category;
}

}  // namespace longhaul::link
