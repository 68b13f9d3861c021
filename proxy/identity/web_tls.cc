// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/web_tls.h"

#include <openssl/err.h>
#include <sys/stat.h>

#include <boost/asio/ssl/context.hpp>
#include <cerrno>
#include <cstring>

#include "proxy/config/read.h"

namespace longhaul::identity {
namespace {

namespace fs = std::filesystem;
namespace ssl = boost::asio::ssl;

[[noreturn]] void refuse(const fs::path& file, const std::string& sentence) {
  ERR_clear_error();
  throw config::ConfigError(file.string() + ": " + sentence);
}

// OpenSSL's messages for missing files name neither the file nor the reason.
struct stat must_exist(const fs::path& file, const std::string& what) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0)
    refuse(file, "the " + what + " cannot be read: " + std::strerror(errno) + ".");
  return about;
}

WebContext context_for(ssl::context::method method) {
  auto context = std::make_shared<ssl::context>(method);
  if (SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION) != 1)
    throw config::ConfigError("OpenSSL does not support TLS 1.2.");
  return context;
}

// A daemon cannot ask for a passphrase.
std::string empty_passphrase(std::size_t, ssl::context::password_purpose) { return {}; }

WebContext for_control(const config::Control& control) {
  const auto context = context_for(ssl::context::tls_server);
  context->set_password_callback(empty_passphrase);
  const fs::path &certificate = control.tls_certificate, &key = control.tls_key;
  must_exist(certificate, "certificate");
  if ((must_exist(key, "private key").st_mode & (S_IRWXG | S_IRWXO)) != 0)
    refuse(key, "other users can read or change this private key; run chmod 600 on it.");
  boost::system::error_code error;
  context->use_certificate_chain_file(certificate.string(), error);
  if (error)
    refuse(certificate,
           "this is not a certificate in PEM format, or it cannot be read: " + error.message() + ".");
  context->use_private_key_file(key.string(), ssl::context::pem, error);
  if (error)
    refuse(key,
           "this is not a private key in PEM format without a passphrase, or it does not match the "
           "certificate " +
               certificate.string() + ": " + error.message() + ".");
  return context;
}

WebContext for_collector(const config::Export& exports) {
  const auto context = context_for(ssl::context::tls_client);
  context->set_verify_mode(ssl::verify_peer);
  boost::system::error_code error;
  if (!exports.otlp_ca) {
    context->set_default_verify_paths(error);
    if (error)
      throw config::ConfigError("the system's certificates cannot be used: " + error.message() + ".");
    return context;
  }
  must_exist(*exports.otlp_ca, "certificate");
  context->load_verify_file(exports.otlp_ca->string(), error);
  if (error)
    refuse(*exports.otlp_ca,
           "this has no certificate in PEM format, or it cannot be read: " + error.message() + ".");
  return context;
}

}  // namespace

WebTls load_web_tls(const config::Config& config) {
  WebTls tls;
  if (config.control.tls_listen) tls.control = for_control(config.control);
  if (config.exports.otlp && config.exports.otlp->tls) tls.collector = for_collector(config.exports);
  return tls;
}

}  // namespace longhaul::identity
