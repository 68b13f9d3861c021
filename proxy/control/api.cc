// SPDX-License-Identifier: Apache-2.0
// The routes of the control API. README.md in this folder shows each with an example.
#include "proxy/control/api.h"

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <ranges>
#include <utility>
#include <vector>

#include "proxy/control/admission.h"
#include "proxy/control/flow_answers.h"
#include "proxy/control/history_view.h"
#include "proxy/control/page.h"
#include "proxy/control/store_views.h"
#include "proxy/control/target.h"
#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace json = boost::json;
using http::status;
using http::verb;

constexpr std::string_view kFlowPrefix = "/v1/flows/";

enum class Topic {
  page,
  metrics,
  status,
  flows,
  flow,
  talkers,
  history,
  why,
  features,
  clear_cache,
  intercept,
  reload
};

struct Route {
  Topic topic;
  std::string_view path;  // "/v1/flows/" matches every path below it
  std::string_view allow;
};

constexpr std::array kRoutes{
    Route{Topic::metrics, "/metrics", "GET, HEAD"},
    Route{Topic::status, "/v1/status", "GET, HEAD"},
    Route{Topic::flows, "/v1/flows", "GET, HEAD"},
    Route{Topic::flow, kFlowPrefix, "GET, HEAD"},
    Route{Topic::talkers, "/v1/talkers", "GET, HEAD"},
    Route{Topic::history, "/v1/history", "GET, HEAD"},
    Route{Topic::why, "/v1/why", "GET, HEAD"},
    Route{Topic::features, "/v1/features", "GET, HEAD, PATCH, POST"},
    Route{Topic::clear_cache, "/v1/clear-cache", "POST"},
    Route{Topic::intercept, "/v1/intercept", "GET, HEAD, POST"},
    Route{Topic::reload, "/v1/reload", "POST"},
};

constexpr Route kPageRoute = {Topic::page, "/", "GET, HEAD"};

const Route* find_route(std::string_view path) {
  if (find_page_file(path) != nullptr) return &kPageRoute;
  const auto* const found = std::ranges::find_if(kRoutes, [path](const Route& route) {
    return route.path == path || (route.path == kFlowPrefix && path.starts_with(kFlowPrefix));
  });
  return found == kRoutes.end() ? nullptr : found;
}

bool allows(const Route& route, verb method) {
  const auto name = std::string_view(http::to_string(method));
  for (std::size_t at = route.allow.find(name); at != std::string_view::npos;
       at = route.allow.find(name, at + 1)) {
    const auto end = at + name.size();
    if ((at == 0 || route.allow[at - 1] == ' ') && (end == route.allow.size() || route.allow[end] == ','))
      return true;
  }
  return false;
}

bool takes_parameters(Topic topic) {
  return topic == Topic::flows || topic == Topic::talkers || topic == Topic::history || topic == Topic::why;
}

bool only_reads(verb method) { return method == verb::get || method == verb::head; }

Answer history(const Controlled& daemon, const Target& target) {
  std::uint64_t step = 1, since = 0;
  for (const auto& [name, value] : target.parameters) {
    if (name != "step" && name != "since") return unknown_parameter(name, "step and since");
    const auto number = parse_number<std::uint64_t>(value);
    if (!number)
      return refusal(status::bad_request, name + " must be a number of seconds, not " + in_quotes(value));
    (name == "step" ? step : since) = *number;
  }
  const auto* const series =
      step > 3600 ? nullptr : daemon.history().find(std::chrono::seconds(static_cast<std::int64_t>(step)));
  if (series == nullptr)
    return refusal(status::bad_request, "step must be 1, 60 or 3600, not " + std::to_string(step));
  return {.body = view_history(*series, since)};
}

// Reads the body, a JSON object of scalars, as pairs of texts in their order.
boost::system::result<std::vector<std::pair<std::string, std::string>>, Answer> read_settings(
    std::string_view body) {
  boost::system::error_code error;
  const auto value = json::parse(body, error, {}, {.max_depth = 4});
  if (error || !value.is_object())
    return refusal(status::bad_request, R"(the body is not a JSON object such as {"transport": "auto"})");
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto& [name, setting] : value.get_object()) {
    if (setting.is_string())
      settings.emplace_back(name, setting.get_string());
    else if (setting.is_bool() || setting.is_int64() || setting.is_uint64())
      settings.emplace_back(name, json::serialize(setting));
    else
      return refusal(status::bad_request,
                     "the value of " + in_quotes(name) + " must be a string, a number, true or false");
  }
  return settings;
}

Answer change_features(Controlled& daemon, std::string_view body) {
  const auto settings = read_settings(body);
  if (settings.has_error()) return settings.error();
  if (settings->empty())
    return refusal(status::bad_request, R"(nothing to change; send {"FEATURE": "VALUE"} or {"preset": "T"})");
  auto features = daemon.features();
  for (const auto& [name, value] : *settings) {
    const auto set = config::set_feature(features, name, value);
    if (set.has_error()) return refusal(status::bad_request, set.error().message);
  }
  const auto before = view(daemon.features());
  daemon.change_features(features);
  const auto after = view(daemon.features());
  json::array changed;
  for (const auto& [name, value] : after)
    if (before.at(name) != value) changed.emplace_back(name);
  return answer_json({{"features", after}, {"changed", std::move(changed)}});
}

json::object view_intercept(Controlled& daemon) {
  const auto status = daemon.status();
  return {{"state", to_text(status.intercept)},
          {"error", status.intercept_error.empty() ? json::value() : json::value(status.intercept_error)},
          {"rules", daemon.intercept_rules()},
          {"fail_closed", {{"state", to_text(status.fail_closed)}, {"rules", daemon.fail_closed_rules()}}}};
}

Answer change_intercept(Controlled& daemon, std::string_view body) {
  const auto settings = read_settings(body);
  if (settings.has_error()) return settings.error();
  const bool one = settings->size() == 1 && settings->front().first == "action";
  const std::string_view action = one ? settings->front().second : std::string_view{};
  constexpr std::pair<std::string_view, InterceptAction> kActions[] = {
      {"up", InterceptAction::up},
      {"down", InterceptAction::down},
      {"fail_closed_install", InterceptAction::fail_closed_install},
      {"fail_closed_remove", InterceptAction::fail_closed_remove}};
  const auto* const known = std::ranges::find(kActions, action, [](const auto& each) { return each.first; });
  if (known == std::end(kActions))
    return refusal(status::bad_request,
                   R"(send {"action": "up"}, "down", "fail_closed_install" or "fail_closed_remove")");
  const auto done = daemon.intercept(known->second);
  if (done.has_error()) return refusal(status::conflict, done.error().sentence);
  return answer_json(view_intercept(daemon));
}

// An empty body means everything.
boost::system::result<ClearWhat, Answer> clear_what(std::string_view body) {
  if (body.empty()) return ClearWhat::all;
  const auto settings = read_settings(body);
  if (settings.has_error()) return settings.error();
  if (settings->empty()) return ClearWhat::all;
  if (settings->size() == 1 && settings->front() == std::pair<std::string, std::string>("only", "objects"))
    return ClearWhat::objects;
  return refusal(status::bad_request, R"(send nothing, or {"only": "objects"})");
}

Answer reload(Controlled& daemon) {
  const auto done = daemon.reload();
  if (done.has_error()) return refusal(status::conflict, done.error().sentence);
  json::array changed;
  for (const std::string& change : *done) changed.emplace_back(change);
  return answer_json({{"changed", std::move(changed)}});
}

Answer no_such_path(std::string_view path) {
  return refusal(status::not_found,
                 "not found: " + in_quotes(path) + "; the API is under /v1/, metrics are at /metrics");
}

// Browsers report which page sends a request. A page of another site may only open the status page: it could
// not read other responses, but it must not cause work for this daemon either.
bool is_of_another_page(const Request& request, const Route& route) {
  if (!request.origin.empty() && request.origin != (request.tls ? "https://" : "http://") + request.host) return true;
  const auto& site = request.fetch_site;
  if (site.empty() || site == "same-origin" || site == "none") return false;
  return route.topic != Topic::page || request.fetch_mode != "navigate";
}

// Requests from this machine may read without the token; changes, and requests from elsewhere or over TLS,
// need it. The page's own files are not secret, and a browser that opens the page has no token yet. A wrong
// token is always refused, so that the client notices the mistake.
std::optional<Answer> refuse_token(const Request& request, const Route& route, std::string_view token) {
  const bool from_here = !request.tls && request.remote.address().is_loopback();
  const auto check = check_token(request.authorization, token);
  if (check == TokenCheck::right) return std::nullopt;
  const bool reads_freely = from_here || (request.tls && route.topic == Topic::page);
  if (check == TokenCheck::missing && reads_freely && only_reads(request.method)) return std::nullopt;
  std::string_view sentence = "wrong token; the right one is in the daemon's control.token";
  if (check == TokenCheck::missing)
    sentence = from_here ? "requests that change something need the token: Authorization: Bearer TOKEN"
                         : "requests from other machines need the token: Authorization: Bearer TOKEN";
  auto answer = refusal(status::unauthorized, sentence);
  answer.asks_for_token = true;
  return answer;
}

}  // namespace

Api::Api(Controlled& daemon, std::string token) : daemon_(daemon), token_(std::move(token)) {}

std::optional<Answer> Api::refuse(const Request& request) const {
  if (request.host.empty()) return refusal(status::bad_request, "the request has no Host header");
  // With TLS the certificate names the host: a page whose own name resolves to this machine cannot connect.
  if (!request.tls && !host_is_ours(request.host, request.local))
    return refusal(status::forbidden,
                   "the Host header " + in_quotes(request.host) +
                       " does not match this server; use localhost or its address, with port " +
                       std::to_string(request.local.port()));
  const auto target = parse_target(request.target);
  if (!target) return refusal(status::bad_request, "the request's target is not a path");
  const auto* const route = find_route(target->path);
  if (route == nullptr) return no_such_path(target->path);
  if (!allows(*route, request.method)) {
    auto answer = refusal(status::method_not_allowed,
                          in_quotes(target->path) + " accepts only " + std::string(route->allow));
    answer.allow = route->allow;
    return answer;
  }
  if (is_of_another_page(request, *route))
    return refusal(status::forbidden, "requests from pages of other sites are refused");
  return refuse_token(request, *route, token_);
}

asio::awaitable<Answer> Api::answer(const Request& request, const ApiCounters& counters) {
  const auto target = parse_target(request.target);
  if (!target) co_return refusal(status::bad_request, "the request's target is not a path");
  const auto* const route = find_route(target->path);
  if (route == nullptr) co_return no_such_path(target->path);
  if (!target->parameters.empty() && !takes_parameters(route->topic))
    co_return refusal(status::bad_request, in_quotes(target->path) + " takes no parameters");
  const bool reads = only_reads(request.method);
  switch (route->topic) {
    case Topic::why:
      co_return co_await why(daemon_, *target);
    case Topic::flows: {
      auto query = read_flow_query(*target);
      if (query.has_error()) co_return query.error();
      Answer page;  // g++ 12 destroys an object twice that is awaited inside an initialiser
      page.body = co_await list_flows(daemon_, std::move(*query));
      co_return page;
    }
    case Topic::page: {
      const auto* const file = find_page_file(target->path);
      co_return Answer{.body = std::string(file->text), .content_type = std::string(file->content_type)};
    }
    case Topic::talkers: {
      auto query = read_talkers_query(*target);
      if (query.has_error()) co_return query.error();
      Answer answer;
      answer.body = co_await list_talkers(daemon_, *query);
      co_return answer;
    }
    case Topic::history:
      co_return history(daemon_, *target);
    case Topic::flow:
      co_return one_flow(daemon_, std::string_view(target->path).substr(kFlowPrefix.size()));
    case Topic::metrics:
      co_return Answer{
          .body = metric_families(daemon_.status(), daemon_.flows(), daemon_.features(), counters).text(),
          .content_type = "text/plain; version=0.0.4; charset=utf-8"};
    case Topic::status:
      co_return answer_json(view_status(daemon_.status(), daemon_.flows(), daemon_.features(),
                                       daemon_.configured_features()));
    case Topic::features:
      co_return reads ? answer_json(view(daemon_.features())) : change_features(daemon_, request.body);
    case Topic::intercept:
      co_return reads ? answer_json(view_intercept(daemon_)) : change_intercept(daemon_, request.body);
    case Topic::reload:
      co_return reload(daemon_);
    case Topic::clear_cache: {
      const auto what = clear_what(request.body);
      if (what.has_error()) co_return what.error();
      const auto cleared = co_await daemon_.clear_cache(*what);
      co_return answer_json(view(cleared));
    }
  }
  co_return no_such_path(target->path);
}

}  // namespace longhaul::control
