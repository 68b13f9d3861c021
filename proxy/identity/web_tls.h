// SPDX-License-Identifier: Apache-2.0
// TLS for the control API for other machines, and for an OpenTelemetry collector. Reads their files at the
// start, when the daemon may still be root. Links have TLS of their own (link/io/tls_engine.h).
#pragma once
#include <memory>

#include "proxy/config/config.h"

namespace boost::asio::ssl {
class context;
}

namespace longhaul::identity {

using WebContext = std::shared_ptr<boost::asio::ssl::context>;

struct WebTls {
  WebContext control;    // null if [control] tls_listen is not set
  WebContext collector;  // null if [export] otlp is not https
};

// Throws config::ConfigError, which names the file.
WebTls load_web_tls(const config::Config& config);

}  // namespace longhaul::identity
