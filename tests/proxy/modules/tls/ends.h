// SPDX-License-Identifier: Apache-2.0
// Clients and servers of libssl on both sides of the halves, and what they and the far half trust.
#pragma once
#include <openssl/err.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "proxy/modules/tls/ech.h"
#include "proxy/modules/tls/leg.h"
#include "proxy/modules/tls/policy.h"
#include "tests/proxy/modules/tls/certificates.h"

namespace longhaul::tls {

struct Asked final : LegUser {
  Bytes choose_protocol() const override { return std::as_bytes(std::span(protocol)); }
  Bytes certificate_status(const X509*) const override { return std::as_bytes(std::span(status)); }
  void on_secret(std::string_view line) override { (secrets += line) += '\n'; }
  Bytes encrypted_hello() const override { return pretended; }
  std::string protocol = "echo/1", status, secrets;
  Buffer pretended;
};

// Application data that cannot be decrypted.
inline std::string forged_record() { return std::string{0x17, 3, 3, 0, 32} + std::string(32, 'x'); }

// An end of the connection that uses libssl as any program does.
class End {
 public:
  End(SSL_CTX* context, bool is_client) : leg_(context, asked_) {
    if (is_client)
      SSL_set_connect_state(leg_.ssl());
    else
      SSL_set_accept_state(leg_.ssl());
  }
  SSL* ssl() { return leg_.ssl(); }

  // What came since the last call; the answer to the network is taken with out().
  void take(std::string& arrived) {
    leg_.feed(std::as_bytes(std::span(arrived)));
    arrived.clear();
    go_on();
  }
  void go_on() {
    if (failed) return;
    if (!is_up) {
      const int result = leg_.shake_hands();
      is_up = result == SSL_ERROR_NONE;
      failed = !is_up && result != SSL_ERROR_WANT_READ;
      if (failed) error = ERR_peek_error();
    }
    if (!is_up) return;
    Buffer plain;
    const auto got = leg_.read(plain);
    heard.append(reinterpret_cast<const char*>(plain.data()), plain.size());
    closed |= got == Leg::Read::closed;
    failed |= got == Leg::Read::failed;
  }
  // What it says before it has heard anything.
  std::string out_after_start() {
    go_on();
    return out();
  }
  void say(const std::string& text) { REQUIRE(leg_.write(std::as_bytes(std::span(text)))); }
  void close() { leg_.close(); }
  // Of a record that does not decrypt, it says so: with the alert bad_record_mac.
  static constexpr int kFails = SSL_AD_BAD_RECORD_MAC;
  void fail() {
    std::string forged = forged_record();
    take(forged);
    REQUIRE(failed);
  }
  int heard_alert() const { return leg_.fatal_alert().value_or(0); }
  void speaks(const std::string& protocol) { asked_.protocol = protocol; }
  void have_status(const std::string& status) { asked_.status = status; }
  // Of a client, before its handshake: sends the extension for Encrypted Client Hello.
  void pretend_ech() { asked_.pretended = pretended_ech(); }
  std::string got_status() {
    const unsigned char* status = nullptr;
    const long size = SSL_get_tlsext_status_ocsp_resp(ssl(), &status);
    return size > 0 ? std::string(reinterpret_cast<const char*>(status), static_cast<std::size_t>(size)) : "";
  }
  // With log_secrets(): the line of the key log that begins so.
  std::string secret(const std::string& label) const {
    const std::size_t at = asked_.secrets.find(label + ' ');
    REQUIRE(at != std::string::npos);
    return asked_.secrets.substr(at, asked_.secrets.find('\n', at) - at);
  }
  std::string out() {
    const Slice slice = leg_.drain();
    return {reinterpret_cast<const char*>(slice.bytes().data()), slice.size()};
  }

  bool is_up = false, failed = false, closed = false;
  unsigned long error = 0;  // of the handshake
  std::string heard;

 private:
  Asked asked_;
  Leg leg_;
};

// Of a client; the context of a server does it anyway.
inline void log_secrets(SSL_CTX* context) {
  SSL_CTX_set_keylog_callback(context, [](const SSL* ssl, const char* line) {
    static_cast<LegUser*>(SSL_get_app_data(ssl))->on_secret(line);
  });
}

struct World {
  // Without the system's authorities, which take longer to read than a test.
  World() { ::setenv(X509_get_default_cert_file_env(), "/dev/null", 1); }

  Issued authority = issue("ca"), real = issue("a.corp", &authority), shown = issue("a.corp", &authority);

  std::shared_ptr<const modules::Secrets> policy(const std::string& name) const {
    std::vector<modules::ServerFiles> tables;
    tables.push_back(table(name, shown, authority));
    auto read = Policy::read(tables);
    REQUIRE(read.has_value());
    return *std::move(read);
  }
  Context client_context() const {
    const Authorities trusted(X509_STORE_new());
    X509_STORE_add_cert(trusted.get(), authority.certificate.get());
    return context_to_server(trusted.get());
  }
  Context server_context(const Issued& as) const {
    Context context = context_to_client();
    SSL_CTX_use_certificate(context.get(), as.certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), as.key.get());
    return context;
  }
};

}  // namespace longhaul::tls
