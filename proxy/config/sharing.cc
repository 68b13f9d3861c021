// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/sharing.h"

#include <algorithm>

namespace longhaul::config {
namespace {

bool has_name(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

bool share_dictionary(const Config& config, const Peer& one, const Peer& other) {
  return std::any_of(config.dictionary.share.begin(), config.dictionary.share.end(), [&](const auto& group) {
    return has_name(one.groups, group) && has_name(other.groups, group);
  });
}

std::vector<std::string> sharing_warnings(const Config& config) {
  std::vector<std::string> list;
  for (const std::string& group : config.dictionary.share) {
    const auto members = std::count_if(config.peers.begin(), config.peers.end(),
                                       [&](const Peer& peer) { return has_name(peer.groups, group); });
    if (members < 2)
      list.push_back("[dictionary] share contains the group \"" + group + "\", but " +
                     (members == 0 ? "no peer is" : "only one peer is") +
                     " in it, so nothing is shared: two or more [[peer]] need groups = [\"" + group +
                     "\"].");
  }
  for (const Peer& peer : config.peers)
    for (const std::string& group : peer.groups)
      if (!has_name(config.dictionary.share, group))
        list.push_back("The peer \"" + peer.name + "\" is in the group \"" + group +
                       "\", which is not in [dictionary] share, so the group has no effect.");
  return list;
}

}  // namespace longhaul::config
