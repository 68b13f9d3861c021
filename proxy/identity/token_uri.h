// SPDX-License-Identifier: Apache-2.0
// The URI of a private key in a PKCS#11 token (RFC 7512), as written in a configuration, and the file of its
// PIN.
#pragma once
#include <p11-kit/uri.h>

#include <filesystem>
#include <memory>
#include <string>

#include "proxy/config/text_error.h"

namespace longhaul::identity {

class TokenUri {
 public:
  // The error is the end of a sentence about `text`.
  static config::TextResult<TokenUri> parse(const std::string& text);

  const std::string& text() const { return text_; }                    // without the query, for messages
  const std::filesystem::path& pin_file() const { return pin_file_; }  // empty if the token needs no PIN
  const std::filesystem::path& module() const { return module_; }  // empty for all registered ones
  P11KitUri* get() const { return uri_.get(); }

 private:
  struct Free {
    void operator()(P11KitUri* uri) const { p11_kit_uri_free(uri); }
  };
  std::unique_ptr<P11KitUri, Free> uri_;
  std::string text_;
  std::filesystem::path pin_file_, module_;
};

}  // namespace longhaul::identity
