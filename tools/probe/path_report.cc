// SPDX-License-Identifier: Apache-2.0
// One row for each link, in the order packets take them.
#include "tools/probe/path_report.h"

#include <algorithm>

#include "tools/probe/table.h"

namespace longhaul::probe {
namespace {

// Right behind the unit that keeps the number between 1 and 1000.
std::pair<double, const char*> unit_of(double bits) {
  if (bits >= 1e9) return {1e9, "Gbit/s"};
  if (bits >= 1e6) return {1e6, "Mbit/s"};
  return {1e3, "kbit/s"};
}

std::string capacity_text(const Capacity& capacity) {
  if (!capacity.bits_per_second) return "over " + rate_text(capacity.low);
  const auto [factor, unit] = unit_of(*capacity.bits_per_second);
  return fixed(*capacity.bits_per_second / factor, 2) + " (" + fixed(capacity.low / factor, 2) + " to " +
         fixed(*capacity.high / factor, 2) + ") " + unit;
}

std::string loss_text(const Link& link) {
  return fixed(link.loss.value * 100, 2) + " (" + fixed(link.loss.low * 100, 2) + " to " +
         fixed(link.loss.high * 100, 2) + ")";
}

const char* model_text(Model model) {
  return model == Model::separate ? "separate" : model == Model::constant ? "constant" : "symmetric";
}

boost::json::object to_json(const Capacity& capacity) {
  boost::json::object object{{"low", capacity.low}};
  object["bps"] = capacity.bits_per_second ? boost::json::value(*capacity.bits_per_second) : nullptr;
  object["high"] = capacity.high ? boost::json::value(*capacity.high) : nullptr;
  return object;
}

boost::json::object to_json(const Share& share) {
  return {{"share", share.value}, {"low", share.low}, {"high", share.high}};
}

}  // namespace

std::string where_text(const std::vector<Hop>& hops, unsigned limit) {
  for (const Hop& hop : hops)
    if (hop.limit == limit && hop.address) return text_of(*hop.address);
  return "here";
}

boost::json::object to_json(const Path& path) {
  boost::json::array hops, links;
  for (const Hop& hop : path.hops) {
    boost::json::object item{{"hop", hop.limit}};
    item["address"] = hop.address ? boost::json::value(text_of(*hop.address)) : nullptr;
    if (hop.address) {
      item["is_end"] = hop.is_end;
      item["answers_are_limited"] = hop.rate_limited;
      item["sent"] = hop.sent;
      item["answered"] = hop.answered;
      item["least_rtt_ms"] = hop.least_us / 1000;
      item["loss"] = to_json(share_of(hop.sent - hop.answered, hop.sent));
      if (hop.fit) item["way_back"] = model_text(hop.fit->model);
      boost::json::array points;
      for (const Point& point : hop.points)
        points.push_back(boost::json::array{point.size, point.reply, point.us});
      item["minima"] = points;
    }
    hops.push_back(item);
  }
  for (const Link& link : path.links) {
    boost::json::object item{{"from", link.from}, {"to", link.to}};
    item["capacity"] = to_json(link.fit.there);
    item["capacity_back"] = link.fit.back ? boost::json::value(to_json(*link.fit.back)) : nullptr;
    item["delay_ms"] = link.fit.delay_us / 1000;
    item["delay_error_ms"] = link.fit.delay_error / 1000;
    item["loss"] = to_json(link.loss);
    links.push_back(item);
  }
  boost::json::object object{{"host", path.host},
                             {"address", text_of(path.address)},
                             {"by", name_of(path.by)},
                             {"largest_bytes", path.mtu},
                             {"reached", path.reached},
                             {"interrupted", path.interrupted},
                             {"hops", hops},
                             {"links", links}};
  object["remark"] = path.remark.empty() ? boost::json::value(nullptr) : boost::json::value(path.remark);
  return object;
}

void print(const Path& path, std::ostream& out) {
  out << "path to " << path.host << " (" << text_of(path.address) << ") by " << name_of(path.by)
      << ", packets up to " << path.mtu << " bytes\n\n";
  std::vector<std::vector<std::string>> rows{
      {"hop", "address", "capacity of the link to it", "back", "delay, ms one way", "loss, %", "rtt, ms"}};
  bool assumed = false, separate = false;
  for (const Hop& hop : path.hops) {
    if (!hop.address) {
      rows.push_back({std::to_string(hop.limit), "silent"});
      continue;
    }
    const auto link = std::find_if(path.links.begin(), path.links.end(),
                                   [&](const Link& one) { return one.to == hop.limit; });
    if (link == path.links.end()) {
      rows.push_back({std::to_string(hop.limit), text_of(*hop.address), "too few answers"});
      continue;
    }
    const bool known = link->fit.back.has_value();
    (known ? separate : assumed) = true;
    rows.push_back({std::to_string(hop.limit), text_of(*hop.address), capacity_text(link->fit.there),
                    known ? link->fit.back->bits_per_second ? rate_text(*link->fit.back->bits_per_second)
                                                            : "over " + rate_text(link->fit.back->low)
                          : "assumed*",
                    fixed(link->fit.delay_us / 1000, 2) + " ± " + fixed(link->fit.delay_error / 1000, 2),
                    loss_text(*link), fixed(hop.least_us / 1000, 2)});
  }
  print_table(rows, out);
  out << "\nin brackets and after ±: 95 % confidence intervals; loss: round trip; rtt: minimum\n";
  if (assumed)
    out << "* cannot be measured from the answers; assumed to be as fast as the forward direction of the "
           "link\n";
  for (const Hop& hop : path.hops)
    if (hop.rate_limited)
      out << "hop " << hop.limit << " answers about one probe per second, so it was probed at that rate\n";
  if (!path.remark.empty()) out << path.remark << '\n';
  if (path.interrupted) out << "interrupted: the results cover the probes sent until then\n";
}

}  // namespace longhaul::probe
