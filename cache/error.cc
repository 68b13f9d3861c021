// SPDX-License-Identifier: Apache-2.0
#include "cache/error.h"

namespace longhaul::cache {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "cache"; }
  std::string message(int code) const override {
    switch (static_cast<StoreError>(code)) {
      case StoreError::truncated:
        return "the file is truncated";
      case StoreError::damaged:
        return "it is damaged, or was written with another key";
      case StoreError::wrong_digest:
        return "the content does not match its digest";
      case StoreError::no_randomness:
        return "the system provides no random bytes";
      case StoreError::no_cipher:
        return "OpenSSL has failed";
      case StoreError::catalogue:
        return "the catalogue failed";
    }
    return "unknown store error";
  }
};

}  // namespace

const boost::system::error_category& store_category() {
  static const Category category;
  return category;
}

}  // namespace longhaul::cache
