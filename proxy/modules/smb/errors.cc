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
        return "the SMB message exceeds the size limit";
      case Error::unknown_frame:
        return "not an SMB message";
      case Error::malformed_header:
        return "malformed SMB header";
      case Error::malformed_record:
        return "malformed SMB request or response";
      case Error::forged:
        return "SMB message with an invalid signature or encryption";
      case Error::unprotected:
        return "SMB message that must be signed or encrypted, but is not";
    }
    return "unknown SMB error";
  }
};

}  // namespace

const boost::system::error_category& error_category() {
  static const Category category;
  return category;
}

}  // namespace longhaul::smb
