// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_path_log.h"

#include <string_view>
#include <utility>

#include "proxy/log/log.h"

namespace longhaul::link::udp {

void UdpPathLog::carried_by(const char* carrier, const char* reason) {
  if (std::string_view(carrier_) == carrier) return;
  if (*carrier_)
    log::info("link_path_changed",
              {{"peer", peer_}, {"from", carrier_}, {"to", carrier}, {"reason", reason}});
  carrier_ = carrier;
}

void UdpPathLog::session_ends() {
  carrier_ = "";
  line_.reset();
}

void UdpPathLog::line_is(std::size_t line, const std::string& name, LineState state) {
  if (line >= worked_.size()) worked_.resize(line + 1);
  const bool works = state == LineState::works;
  if (works == worked_[line]) return;
  worked_[line] = works;
  if (works)
    log::info("path_up", {{"peer", peer_}, {"path", name}});
  else
    log::warn("path_down", {{"peer", peer_},
                            {"path", name},
                            {"reason", state == LineState::unused ? "the sites no longer use it"
                                                                  : "packets on it are not acknowledged"}});
}

void UdpPathLog::carried_on(std::size_t line, const std::string& name, const char* reason) {
  if (line_ == line) return;
  line_ = line;
  if (line > 0) log::info("path_chosen", {{"peer", peer_}, {"path", name}, {"reason", reason}});
}

void UdpPathLog::no_socket(const std::string& line, const boost::system::error_code& error) const {
  log::warn("udp_socket", {{"peer", peer_}, {"path", line}, {"reason", error.message()}});
}

void UdpPathLog::peer_failed(const std::string& why) const {
  log::warn("link_failed", {{"peer", peer_}, {"carrier", "udp"}, {"reason", why}});
}

void UdpPathLog::unanswered() const {
  log::warn(
      "udp_unanswered",
      {{"peer", peer_},
       {"effect", "TCP carries the link, which is slow on lossy lines"},
       {"remedy", "allow UDP on the link's port, in both directions, in the firewalls between the sites"}});
}

void UdpPathLog::bursts_dropped() {
  if (std::exchange(bursts_dropped_, true)) return;
  log::warn("udp_bursts_dropped",
            {{"peer", peer_},
             {"effect", "packets are sent one by one, which needs more CPU"},
             {"remedy",
              "look for a virtual interface or an emulator with a short queue on the path; try "
              "ethtool -K INTERFACE tx-udp-segmentation off"}});
}

}  // namespace longhaul::link::udp
