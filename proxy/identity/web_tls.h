// SPDX-License-Identifier: Apache-2.0
// TLS of the daemon's two HTTP ends: the control API for other machines, and an OpenTelemetry collector.
// Reads their files, as root alone may at the start. Links have TLS of their own (link/io/tls_engine.h).
#pragma once
#include <memory>

#include "proxy/config/config.h"

namespace boost::asio::ssl {
class context;
}

namespace longhaul::identity {

using WebContext = std::shared_ptr<boost::asio::ssl::context>;

struct WebTls {
  WebContext control;    // none: [control] tls_listen is not set
  WebContext collector;  // none: [export] otlp is not https
};

// Throws config::ConfigError, which names the file.
WebTls load_web_tls(const config::Config& config);

}  // namespace longhaul::identity
