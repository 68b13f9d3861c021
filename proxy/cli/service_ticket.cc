// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/service_ticket.h"

#include <krb5.h>

#include <memory>

namespace longhaul::cli {
namespace {

// Frees the objects of libkrb5 with its context.
class Kerberos {
 public:
  Kerberos() { failed_ = krb5_init_context(&context_); }
  ~Kerberos() {
    if (!context_) return;
    krb5_free_data_contents(context_, &request_);
    if (auth_) krb5_auth_con_free(context_, auth_);
    if (ticket_) krb5_free_creds(context_, ticket_);
    krb5_free_cred_contents(context_, &wanted_);
    if (cache_) krb5_cc_close(context_, cache_);
    krb5_free_context(context_);
  }
  Kerberos(const Kerberos&) = delete;
  Kerberos& operator=(const Kerberos&) = delete;

  // The AP-REQ, or empty with the reason in `error`.
  Bytes request(const std::string& service, const std::string& server, std::string& error) {
    if (failed_) return error = "Kerberos is not configured on this host (krb5.conf).", Bytes();
    // An empty realm means the caller's domain, or the domain that it refers to.
    const auto step = [&](krb5_error_code code, const std::string& what) {
      if (code == 0) return true;
      const char* reason = krb5_get_error_message(context_, code);
      error = what + ": " + reason + ".";
      krb5_free_error_message(context_, reason);
      return false;
    };
    const std::string name = service + "/" + server;
    if (!step(krb5_cc_default(context_, &cache_), "the credential cache cannot be opened") ||
        !step(krb5_cc_get_principal(context_, cache_, &wanted_.client),
              "there is no ticket of a user; run kinit USER@REALM first") ||
        !step(
            krb5_build_principal(context_, &wanted_.server, 0, "", service.c_str(), server.c_str(), nullptr),
            "the name " + name + " is not a valid principal") ||
        !step(krb5_get_credentials(context_, 0, cache_, &wanted_, &ticket_),
              "the domain issues no ticket for " + name + "; is this the name that clients use?") ||
        !step(krb5_mk_req_extended(context_, &auth_, 0, nullptr, ticket_, &request_),
              "cannot create a Kerberos request for " + name))
      return {};
    return {reinterpret_cast<const std::byte*>(request_.data), request_.length};
  }

 private:
  krb5_context context_ = nullptr;
  krb5_error_code failed_ = 0;
  krb5_ccache cache_ = nullptr;
  krb5_creds wanted_{};
  krb5_creds* ticket_ = nullptr;
  krb5_auth_context auth_ = nullptr;
  krb5_data request_{};
};

}  // namespace

config::TextResult<Buffer> service_token(const std::string& service, const std::string& server) {
  // RFC 4121, section 4.1: the mechanism's OID, then the type of the message.
  static constexpr std::string_view kHead{"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00", 13};
  Kerberos kerberos;
  std::string error;
  const Bytes request = kerberos.request(service, server, error);
  if (!error.empty()) return config::TextError{error};
  const std::size_t size = kHead.size() + request.size();
  if (size > 0xffff) return config::TextError{"the ticket is too large for a login."};
  Buffer token;
  ByteWriter writer(token);
  writer.u8(0x60);
  writer.u8(0x82);  // two bytes of length follow
  writer.fixed16(static_cast<std::uint16_t>(size));
  writer.bytes(as_bytes(kHead));
  writer.bytes(request);
  return token;
}

}  // namespace longhaul::cli
