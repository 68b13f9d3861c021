// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings_in_force.h"

#include <utility>

namespace longhaul {

SettingsInForce::SettingsInForce(config::Config config, identity::Identity identity, identity::WebTls web)
    : config_(std::move(config)),
      identity_(std::move(identity)),
      web_(std::move(web)),
      key_log_(config_.link.key_log
                   ? std::make_shared<link::KeyLog>(config_.state_dir / *config_.link.key_log)
                   : nullptr),
      tls_(identity_, key_log_) {}

void SettingsInForce::replace(config::Config config, identity::Identity identity, identity::WebTls web) {
  config_ = std::move(config);
  identity_ = std::move(identity);
  web_ = std::move(web);
  tls_ = link::TlsContext(identity_, key_log_);
}

}  // namespace longhaul
