// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/slow_answer.h"

#include <openssl/err.h>

namespace longhaul::tls {

bool SlowAnswer::begin() {
  SSL_set_app_data(leg_->ssl(), static_cast<LegUser*>(this));
  return entry_.held->run([self = shared_from_this()](EVP_PKEY* key, const std::string& failure) { self->shake_hands(key, failure); });
}

void SlowAnswer::shake_hands(EVP_PKEY* key, const std::string& failure) {
  key_ = key;
  if (key) {
    result_ = leg_->shake_hands();
    error_ = ERR_peek_error();
    ERR_clear_error();
  }
  key_ = nullptr;
  failure_ = failure;
  is_done_.store(true, std::memory_order_release);
}

int SlowAnswer::on_client_hello(SSL* ssl) {
  SSL_set_SSL_CTX(ssl, entry_.to_client.get());
  return SSL_use_PrivateKey(ssl, key_) == 1 ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
}

std::unique_ptr<Leg> SlowAnswer::take_leg(LegUser& user) {
  SSL_set_app_data(leg_->ssl(), &user);
  return std::move(leg_);
}

}  // namespace longhaul::tls
