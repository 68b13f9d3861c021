// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/path_agreement.h"

#include <algorithm>
#include <utility>

#include "proxy/log/log.h"

namespace longhaul::link {

std::vector<UdpTerms::Path> PathAgreement::to_answer(const std::vector<std::string>& offered,
                                                     std::span<const config::PeerPath> own,
                                                     udp::UdpEndpoint* endpoint) {
  std::vector<UdpTerms::Path> paths;
  for (std::size_t number = 0; number < offered.size(); ++number)
    if (std::ranges::find(own, offered[number], &config::PeerPath::name) != own.end())
      paths.push_back({number, offered[number], endpoint, {}});
  return paths;
}

std::vector<UdpTerms::Path> PathAgreement::answered(std::vector<UdpTerms::Path> offer,
                                                    const std::vector<std::string>& answer) {
  std::erase_if(offer, [&](const UdpTerms::Path& path) {
    return std::ranges::find(answer, path.name) == answer.end();
  });
  return offer;
}

void PathAgreement::note(const config::Peer& peer, std::span<const UdpTerms::Path> agreed) {
  std::string missing;
  for (const config::PeerPath& path : peer.paths)
    if (std::ranges::find(agreed, path.name, &UdpTerms::Path::name) == agreed.end())
      missing += (missing.empty() ? "" : ", ") + path.name;
  if (std::exchange(missing_, missing) == missing || missing.empty()) return;
  log::warn("paths_not_agreed", {{"peer", peer.name},
                                 {"paths", missing},
                                 {"effect", agreed.empty() ? "one line is used, as without [[peer.path]]"
                                                           : "the other paths are used"},
                                 {"remedy",
                                  "configure each [[peer.path]] with the same name at both sites, and run a "
                                  "release that supports paths at both"}});
}

}  // namespace longhaul::link
