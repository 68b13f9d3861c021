// SPDX-License-Identifier: Apache-2.0
// Reports to JSON and back.
#include "tools/txn/protocol.h"

#include <boost/json/array.hpp>

#include "tools/measuring/messages.h"
#include "tools/measuring/trouble.h"

namespace longhaul::txn {

boost::json::object report_of(const Measured& measured, bool ended) {
  boost::json::array times;
  times.reserve(measured.response_ns.size());
  for (const auto time : measured.response_ns) times.emplace_back(time);
  boost::json::object json;
  json["times"] = std::move(times);
  json["transactions"] = measured.transactions;
  json["elapsed_ns"] = measured.elapsed_ns;
  json["sent_again"] = measured.counts.sent_again;
  json["timeouts"] = measured.counts.timeouts;
  json["negatives"] = measured.counts.negatives;
  json["ended"] = ended;
  return json;
}

Report parse_report(const boost::json::object& message) {
  const auto sum = [&](std::string_view name) {
    return static_cast<std::uint64_t>(measuring::number(message, name, 0, INT64_MAX));
  };
  Report report;
  Measured& measured = report.measured;
  for (const auto& time : measuring::array(message, "times", kMostTimesInReport)) {
    boost::system::error_code error;
    const auto ns = time.to_number<std::int64_t>(error);
    if (error || ns < 0) throw measuring::Trouble("an agent sent an invalid time");
    measured.response_ns.push_back(ns);
  }
  measured.transactions = sum("transactions");
  measured.elapsed_ns = sum("elapsed_ns");
  measured.counts = {sum("sent_again"), sum("timeouts"), sum("negatives")};
  report.ended = measuring::truth(message, "ended");
  return report;
}

}  // namespace longhaul::txn
