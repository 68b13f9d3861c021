// SPDX-License-Identifier: Apache-2.0
// Reads the configuration file and its keys again, and compares them with those in force. The daemon applies
// them to its parts.
#pragma once
#include <boost/system/result.hpp>
#include <functional>
#include <string>
#include <vector>

#include "proxy/control/controlled.h"
#include "proxy/settings_in_force.h"

namespace longhaul {

struct NewSettings {
  config::Config config;
  identity::Identity identity;
  identity::WebTls web;
};

// Calls `apply` if everything is valid and can change while the daemon runs; returns the changes, one phrase
// each. Otherwise nothing is changed. Both outcomes are logged.
boost::system::result<std::vector<std::string>, control::Refusal> reload_settings(
    const SettingsInForce& now, const std::function<void(NewSettings)>& apply);

}  // namespace longhaul
