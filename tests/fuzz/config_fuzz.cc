// SPDX-License-Identifier: Apache-2.0
// Any text is either a configuration or one sentence about what is wrong with it; never a crash, never
// another exception. What was accepted obeys the promises of config.h.
#include <string>

#include "fuzz/target.h"
#include "proxy/config/read.h"
#include "proxy/config/rules.h"
#include "proxy/modules/modules.h"

namespace longhaul::fuzz::config_target {
using namespace longhaul::config;

namespace {

void obey(const Config& config) {
  require(!config.site.empty());
  for (const Peer& peer : config.peers) {
    require(peer.address || config.link.listen);
    require(!peer.fingerprints.empty() && peer.fingerprints.size() <= Peer::kMostFingerprints);
    for (const std::string& fingerprint : peer.fingerprints) require(fingerprint.size() == 7 + 64);
    for (const Network& network : peer.networks) require(parse_network(to_text(network)) == network);
  }
  Features copy = standard_features(longhaul::modules::feature_table());
  for (const auto& [name, value] : to_text(config.features))
    require(set_feature(copy, name, value).has_value());
  require(copy == config.features);
  for (const Rule& rule : config.rules)
    for (const auto& [name, value] : rule.features) require(set_feature(copy, name, value).has_value());
  const auto somewhere = boost::asio::ip::make_address("10.10.2.2");
  (void)policy_for(config, config.features, somewhere, somewhere, 445);
  (void)warnings(config);
}

}  // namespace

FUZZ_TARGET(config) {
  try {
    obey(read_text({reinterpret_cast<const char*>(data), size}, "fuzz.toml"));
  } catch (const ConfigError& error) {
    const std::string sentence = error.what();
    require(sentence.starts_with("fuzz.toml"));
    require(sentence.find('\n') == std::string::npos);
  }
  return 0;
}

}  // namespace longhaul::fuzz::config_target
