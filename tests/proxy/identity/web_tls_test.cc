// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/web_tls.h"

#include <boost/asio/ssl/context.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "proxy/config/read.h"
#include "proxy/identity/keygen.h"
#include "proxy/temporary_folder.h"

using namespace longhaul;
namespace fs = std::filesystem;

namespace {

config::Config with_control(const fs::path& certificate, const fs::path& key) {
  config::Config config;
  config.control.tls_listen = config::HostPort{"10.10.1.1", 7602};
  config.control.tls_certificate = certificate;
  config.control.tls_key = key;
  return config;
}

config::Config with_collector(const std::optional<fs::path>& ca, bool tls = true) {
  config::Config config;
  config.exports.otlp = config::HttpBase{{"collector", 4318}, "", tls};
  config.exports.otlp_ca = ca;
  return config;
}

std::string sentence(const config::Config& config) {
  try {
    (void)identity::load_web_tls(config);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("TLS for the control API and the collector is made only where it is configured") {
  const TemporaryFolder folder;
  const auto made = identity::keygen("control", folder.path());
  const auto none = identity::load_web_tls(config::Config{});
  CHECK((!none.control && !none.collector));
  CHECK(identity::load_web_tls(with_control(made.certificate, made.private_key)).control);
  CHECK_FALSE(identity::load_web_tls(with_collector({}, false)).collector);
  CHECK(identity::load_web_tls(with_collector({})).collector);
  CHECK(identity::load_web_tls(with_collector(made.certificate)).collector);
}

TEST_CASE("the files of the control API's TLS are refused with the file and the remedy") {
  const TemporaryFolder folder;
  const auto made = identity::keygen("control", folder.path()),
             other = identity::keygen("other", folder.path());
  const fs::path text = folder.path() / "text";
  std::ofstream(text) << "no PEM\n";
  fs::permissions(text, fs::perms::owner_read | fs::perms::owner_write);
  using Catch::Contains;
  CHECK_THAT(sentence(with_control(folder.path() / "none", made.private_key)),
             Contains("none: the certificate cannot be read: No such file"));
  CHECK_THAT(sentence(with_control(made.certificate, folder.path() / "none")),
             Contains("none: the private key cannot be read: No such file"));
  CHECK_THAT(sentence(with_control(text, made.private_key)),
             Contains("text: this is not a certificate in PEM format"));
  CHECK_THAT(sentence(with_control(made.certificate, text)),
             Contains("text: this is not a private key in PEM format"));
  CHECK_THAT(sentence(with_control(made.certificate, other.private_key)),
             Contains("does not match the certificate"));
  fs::permissions(made.private_key, fs::perms::group_read, fs::perm_options::add);
  CHECK_THAT(sentence(with_control(made.certificate, made.private_key)), Contains("run chmod 600 on it."));
}

TEST_CASE("a file with the collector's CA has certificates") {
  const TemporaryFolder folder;
  const fs::path text = folder.path() / "text";
  std::ofstream(text) << "no PEM\n";
  CHECK_THAT(sentence(with_collector(folder.path() / "none")),
             Catch::Contains("none: the certificate cannot be read: "));
  CHECK_THAT(sentence(with_collector(text)), Catch::Contains("text: this has no certificate in PEM format"));
}
