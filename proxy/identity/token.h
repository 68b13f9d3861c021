// SPDX-License-Identifier: Apache-2.0
// A session with a PKCS#11 token in which one private key has been found. Every call blocks; used by one
// thread at a time.
#pragma once
#include <p11-kit/p11-kit.h>

#include <memory>
#include <span>
#include <string>

#include "crypto/secret.h"
#include "proxy/identity/token_uri.h"

namespace longhaul::identity {

class Token {
 public:
  struct Failure {
    std::string why;        // the end of a sentence
    bool is_final = false;  // another attempt could lock the token
  };
  // Returns null on failure, with the reason in `failure`. `pin` ends with a zero byte that is not part of
  // the PIN; if it is empty, there is no login.
  static std::unique_ptr<Token> open(const TokenUri& uri, Bytes pin, Failure& failure);
  ~Token();
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;

  // Returns the reason of a failure; empty on success: then the first `size` bytes of `out` are the
  // signature.
  std::string sign(CK_MECHANISM mechanism, Bytes data, std::span<unsigned char> out, std::size_t& size);

  // Whether it says that its keys can sign so; there may be other reasons why this one cannot.
  bool has(CK_MECHANISM_TYPE mechanism) const;

 private:
  struct Modules;
  Token(std::unique_ptr<Modules> modules, Bytes pin);
  bool log_in(const CK_TOKEN_INFO& about, Failure& failure);
  bool find(const TokenUri& uri, Failure& failure);

  std::unique_ptr<Modules> modules_;
  Bytes pin_;  // its owner outlives this object
  CK_FUNCTION_LIST* module_ = nullptr;
  CK_SLOT_ID slot_ = 0;
  CK_SESSION_HANDLE session_ = 0;
  bool has_session_ = false;
  CK_OBJECT_HANDLE key_ = 0;
  bool asks_each_time_ = false;  // the key requires the PIN for each use (CKA_ALWAYS_AUTHENTICATE)
};

}  // namespace longhaul::identity
