// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/errors.h"

namespace longhaul::smb {
namespace {

class Category : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "smb"; }
  std::string message(int code) const override {
    switch (static_cast<Error>(code)) {
      case Error::frame_too_large:
        return "a message is larger than is held at once";
      case Error::unknown_frame:
        return "these bytes are no message of SMB";
      case Error::malformed_header:
        return "a header of SMB that cannot be read";
      case Error::malformed_record:
        return "a request or response of SMB that cannot be read";
      case Error::forged:
        return "a message of SMB with an invalid signature or encryption";
      case Error::unprotected:
        return "a message of SMB that should be signed or encrypted, and is not";
    }
    return "unknown error of SMB";
  }
};

}  // namespace

const boost::system::error_category& error_category() {
  static const Category category;
  return category;
}

}  // namespace longhaul::smb
