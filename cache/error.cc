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
        return "the file ends too early";
      case StoreError::damaged:
        return "it is damaged, or was written with another key";
      case StoreError::wrong_digest:
        return "the bytes are not those that the name promises";
      case StoreError::no_randomness:
        return "the system gives no random bytes";
      case StoreError::no_cipher:
        return "OpenSSL has failed";
      case StoreError::catalogue:
        return "the catalogue failed";
    }
    return "unknown error of the store";
  }
};

}  // namespace

const boost::system::error_category& store_category() {
  static const Category category;
  return category;
}

}  // namespace longhaul::cache
