// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/refusal_log.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "proxy/config/host_port.h"
#include "proxy/log/log.h"

namespace longhaul::link {

bool RefusalLog::may_log(TimePoint now) {
  if (refilled_ != TimePoint{})
    lines_ = std::min(kBurst, lines_ + kPerSecond * std::chrono::duration<double>(now - refilled_).count());
  refilled_ = now;
  if (lines_ < 1) return false;
  lines_ -= 1;
  return true;
}

void RefusalLog::refused(const boost::asio::ip::tcp::endpoint& from, Refusal refusal,
                         const std::string& detail, TimePoint now) {
  ++counts_[static_cast<std::size_t>(refusal)];
  Source& source = sources_[source_key(from.address())];
  if (source.logged != TimePoint{} && now - source.logged < kInterval) {
    ++source.unlogged;
    return;
  }
  if (!may_log(now)) {
    ++unlogged_;
    return;
  }
  source.logged = now;
  const RefusalText& text = explain(refusal);
  const std::string address = config::to_text({config::unmapped(from.address()).to_string(), from.port()});
  const std::string reason = std::string(text.sentence) + (detail.empty() ? "" : ": " + detail);
  log::warn("link_refused", {{"address", address},
                             {"code", text.code},
                             {"reason", reason},
                             {"remedy", text.remedy},
                             {"unlogged_of_source", std::exchange(source.unlogged, 0)},
                             {"unlogged_of_others", std::exchange(unlogged_, 0)}});
}

}  // namespace longhaul::link
