// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/target.h"

#include <boost/url/parse.hpp>

namespace longhaul::control {

using boost::beast::http::status;

namespace {

std::string reason_codes() {
  std::string text;
  for (const flows::Reason reason : flows::all_reasons())
    text += (text.empty() ? "" : ", ") + std::string(reason->code);
  return text;
}

}  // namespace

std::optional<Target> parse_target(std::string_view text) {
  const auto url = boost::urls::parse_origin_form(text);
  if (url.has_error()) return std::nullopt;
  Target target{url->path(), {}};
  for (const auto& parameter : url->params()) target.parameters.emplace_back(parameter.key, parameter.value);
  return target;
}

Answer unknown_parameter(std::string_view name, std::string_view known) {
  return refusal(status::bad_request,
                 "unknown parameter " + in_quotes(name) + "; known parameters: " + std::string(known));
}

boost::system::result<FlowQuery, Answer> read_flow_query(const Target& target) {
  FlowQuery query;
  for (const auto& [name, value] : target.parameters) {
    if (name == "limit") {
      const auto limit = parse_number<std::size_t>(value);
      if (!limit || *limit == 0 || *limit > FlowQuery::kMostFlows)
        return refusal(status::bad_request, "limit must be a number from 1 to " +
                                                std::to_string(FlowQuery::kMostFlows) + ", not " +
                                                in_quotes(value));
      query.limit = *limit;
    } else if (name == "after") {
      const auto after = parse_number<flows::FlowId>(value);
      if (!after)
        return refusal(status::bad_request, "after must be the number of a flow, not " + in_quotes(value));
      query.after = *after;
    } else if (name == "peer") {
      query.peer = value;
    } else if (name == "reason") {
      query.reason = flows::reason_of(value);
      if (!query.reason)
        return refusal(status::bad_request,
                       "unknown reason code " + in_quotes(value) + "; known codes: " + reason_codes());
    } else if (name == "port") {
      query.port = parse_number<std::uint16_t>(value);
      if (!query.port)
        return refusal(status::bad_request, "port must be a number from 0 to 65535, not " + in_quotes(value));
    } else if (name == "client") {
      query.client = config::parse_network(value);
      if (!query.client)
        return refusal(status::bad_request,
                       "client must be an address or a network, not " + in_quotes(value));
    } else if (name == "server") {
      query.server = config::parse_network(value);
      if (!query.server) query.server_name = value;
    } else if (name == "search") {
      query.search = value;
      for (char& c : query.search)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    } else {
      return unknown_parameter(name, "limit, after, peer, client, server, port, reason and search");
    }
  }
  return query;
}

boost::system::result<TalkersQuery, Answer> read_talkers_query(const Target& target) {
  TalkersQuery query;
  for (const auto& [name, value] : target.parameters) {
    if (name == "limit") {
      const auto limit = parse_number<std::size_t>(value);
      if (!limit || *limit == 0 || *limit > TalkersQuery::kMost)
        return refusal(status::bad_request, "limit must be a number from 1 to " +
                                                std::to_string(TalkersQuery::kMost) + ", not " +
                                                in_quotes(value));
      query.limit = *limit;
    } else if (name == "by") {
      const auto by = talkers_by(value);
      if (!by)
        return refusal(status::bad_request,
                       "by must be client, server, port or peer, not " + in_quotes(value));
      query.by = *by;
    } else {
      return unknown_parameter(name, "by and limit");
    }
  }
  return query;
}

}  // namespace longhaul::control
