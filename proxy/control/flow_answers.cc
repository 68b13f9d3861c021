// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/flow_answers.h"

#include <boost/json/value.hpp>
#include <optional>
#include <string>

#include "proxy/control/flow_views.h"
#include "proxy/control/views.h"
#include "proxy/flows/ends.h"

namespace longhaul::control {

namespace asio = boost::asio;
namespace json = boost::json;
using boost::beast::http::status;

namespace {

Answer no_such_flow(flows::FlowId id) {
  return refusal(status::not_found, "flow " + std::to_string(id) +
                                        " is not live and has not ended recently; use "
                                        "CLIENT:PORT-SERVER:PORT to see what would happen to a new connection");
}

// A live or recently ended flow.
std::optional<json::object> view_by_id(const Controlled& daemon, flows::FlowId id) {
  const auto& table = daemon.flows();
  if (const auto live = table.live().find(id); live != table.live().end())
    return view(live->second, LinkFacts{daemon.status()}, std::chrono::steady_clock::now());
  if (const auto* ended = find_ended(table, id)) return view(*ended);
  return std::nullopt;
}

std::optional<modules::Ends> ends_of_flow(const flows::FlowTable& table, flows::FlowId id) {
  const auto live = table.live().find(id);
  const auto* ended = live == table.live().end() ? find_ended(table, id) : nullptr;
  if (live == table.live().end() && !ended) return std::nullopt;
  const flows::FlowRecord& flow = ended ? ended->record : live->second;
  return flows::ends_of(flow.client.address(), flow.destination);
}

void add_losses(const Controlled& daemon, const std::optional<modules::Ends>& ends, json::object& object) {
  object["lost_files"] = ends ? view_lost_files(daemon.status(), *ends) : json::array{};
  object["told_files"] = ends ? view_told_files(daemon.status(), *ends) : json::array{};
}

// Explains that a live flow waits while its link carries nothing.
void explain_link(const link::LinkStatus& link, json::object& object) {
  const auto waiting = [&](flows::Reason reason, const std::string& what) {
    object = view_reason(reason);
    object["sentence"] =
        what + " " + std::to_string(link.state_age.count()) +
        " s ago, so the flow waits for the link; it is reset a minute after the link was lost.";
  };
  if (link.state == link::LinkState::silent)
    waiting(flows::reasons::link_silent, "The peer stopped answering over the link");
  if (link.state == link::LinkState::down)
    waiting(flows::reasons::link_down, "The link to the peer went down");
}

// If an optimised flow was reset, explains which party reset it.
void explain_reset(flows::ResetBy by, json::object& object) {
  const flows::ResetText* const text = flows::text_of(by);
  if (text == nullptr) return;
  object["sentence"] = std::string(object.at("sentence").as_string()) + " " + std::string(text->sentence);
  if (object.at("reason").as_string() == flows::reasons::optimised.code) object["remedy"] = text->remedy;
}

json::object explained(const Controlled& daemon, const json::object& flow) {
  auto object = view_reason(*flows::reason_of(flow.at("reason").as_string()));
  const bool is_live = flow.at("state") == "live";
  if (is_live && !flow.at("peer").is_null())
    for (const auto& link : daemon.status().links)
      if (link.peer == flow.at("peer").as_string()) explain_link(link, object);
  if (!flow.at("reset_by").is_null())
    for (const flows::ResetText& text : flows::kResetTexts)
      if (text.code == flow.at("reset_by").as_string()) explain_reset(text.by, object);
  object["flow"] = flow;
  object["features"] = flow.at("features");
  add_losses(daemon, ends_of_flow(daemon.flows(), flow.at("id").to_number<flows::FlowId>()), object);
  return object;
}

}  // namespace

Answer one_flow(const Controlled& daemon, std::string_view text) {
  const auto id = parse_number<flows::FlowId>(text);
  if (!id) return refusal(status::bad_request, in_quotes(text) + " is not the number of a flow");
  const auto flow = view_by_id(daemon, *id);
  return flow ? answer_json(*flow) : no_such_flow(*id);
}

// Explains how a flow from any client to this server would be treated.
Answer why_server(Controlled& daemon, std::string_view text) {
  const auto server = config::parse_host_port(text, config::HostKind::address_or_name);
  if (server.has_error()) return refusal(status::bad_request, in_quotes(text) + " " + server.error().message);
  flows::Tuple tuple{.client = {}, .destination = {{}, {}, server->port}};
  if (const auto address = config::parse_address(server->host))
    tuple.destination.address = *address;
  else
    tuple.destination.host = server->host;
  const auto client = daemon.likely_client(tuple.destination);
  if (!client)
    return refusal(status::bad_request, "no client network can reach " + in_quotes(text) +
                                            "; name a client: CLIENT-" + std::string(text));
  tuple.client = {*client, 0};
  auto object = view_forecast(tuple, daemon.forecast(tuple));
  object["server"] = tuple.destination.to_text();
  object["assumed_client"] = client->to_string();
  object["flow"] = nullptr;
  add_losses(daemon, std::nullopt, object);
  object["last"] = nullptr;
  return answer_json(object);
}

asio::awaitable<Answer> why(Controlled& daemon, const Target& target) {
  constexpr std::string_view kHow =
      "use ?flow=NUMBER, ?tuple=CLIENT:PORT-SERVER:PORT or ?server=SERVER:PORT";
  if (target.parameters.size() != 1) co_return refusal(status::bad_request, kHow);
  const auto& [name, value] = target.parameters.front();
  if (name == "flow") {
    const auto id = parse_number<flows::FlowId>(value);
    if (!id)
      co_return refusal(status::bad_request,
                        in_quotes(value) + " is not the number of a flow; " + std::string(kHow));
    const auto flow = view_by_id(daemon, *id);
    if (!flow) co_return no_such_flow(*id);
    co_return answer_json(explained(daemon, *flow));
  }
  if (name == "server") co_return why_server(daemon, value);
  if (name != "tuple") co_return unknown_parameter(name, "flow, tuple and server");
  const auto tuple = flows::parse_tuple(value);
  if (tuple.has_error()) co_return refusal(status::bad_request, tuple.error().message);
  if (const auto id = co_await find_live(daemon, *tuple)) {
    if (const auto flow = view_by_id(daemon, *id)) co_return answer_json(explained(daemon, *flow));
  }
  auto object = view_forecast(*tuple, daemon.forecast(*tuple));
  object["flow"] = nullptr;
  add_losses(daemon, flows::ends_of(tuple->client.address(), tuple->destination), object);
  const auto* ended = find_ended(daemon.flows(), *tuple);
  object["last"] = ended ? json::value(view(*ended)) : json::value();
  co_return answer_json(object);
}

}  // namespace longhaul::control
