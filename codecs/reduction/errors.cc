// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/errors.h"

namespace longhaul::reduction {
namespace {

class Category : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "reduction"; }
  std::string message(int code) const override {
    switch (static_cast<Error>(code)) {
      case Error::malformed_message:
        return "the peer sent a malformed dictionary message";
      case Error::unexpected_message:
        return "the peer sent an unexpected dictionary message";
      case Error::malformed_block:
        return "the peer sent a malformed block";
      case Error::not_restorable:
        return "a block could not be restored, and the peer no longer has it";
    }
    return "unknown reduction error";
  }
};

}  // namespace

const boost::system::error_category& error_category() {
  static const Category category;
  return category;
}

}  // namespace longhaul::reduction
