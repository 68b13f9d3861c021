// SPDX-License-Identifier: Apache-2.0
// Counts and logs the connections refused at the link's port: one line per minute and source, and a limited
// number in total.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "proxy/link/io/refusal.h"
#include "proxy/link/io/source_table.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class RefusalLog {
 public:
  static constexpr Duration kInterval = std::chrono::minutes(1);  // between two lines about one source
  static constexpr std::size_t kMostSources = 4096;
  static constexpr double kBurst = 60, kPerSecond = 1;  // log lines of all sources together

  // `detail` is added to the sentence of the refusal: a fingerprint, or OpenSSL's message; may be empty.
  void refused(const boost::asio::ip::tcp::endpoint& from, Refusal refusal, const std::string& detail,
               TimePoint now);

  const RefusalCounts& counts() const { return counts_; }

 private:
  struct Source {
    TimePoint logged{};
    std::uint64_t unlogged = 0;  // refusals since then
  };
  bool may_log(TimePoint now);

  RefusalCounts counts_{};
  SourceTable<Source> sources_{kMostSources};
  double lines_ = kBurst;
  TimePoint refilled_{};
  std::uint64_t unlogged_ = 0;  // refusals whose line was suppressed
};

}  // namespace longhaul::link
