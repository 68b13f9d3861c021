// SPDX-License-Identifier: Apache-2.0
// Declares the commands for a running daemon, and runs the typed one.
#include "proxy/cli/steer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli11.h"
#include "proxy/cli/control_client.h"
#include "proxy/cli/live_screen.h"
#include "proxy/cli/screens.h"
#include "proxy/cli/top.h"
#include "proxy/config/read.h"
#include "proxy/flows/tuple.h"

namespace longhaul::cli {
namespace {

namespace json = boost::json;
using config::TextError;
using config::TextResult;

struct Options {
  std::string config;  // read for control, state_dir and token_file
  std::string control = "127.0.0.1:7601";
  std::filesystem::path state_dir = "/var/lib/longhaul";
  std::filesystem::path token_file = "control.token";
  bool json = false;
  std::optional<std::string> peer, client, server, reason, search;
  std::optional<std::uint16_t> port;
  std::size_t limit = 0;  // 0: all
  bool watch = false;
  double interval_s = 1;
  std::size_t count = 0;  // frames of a live view; 0: until the user ends it
  std::string flow, server_port;
  std::vector<std::string> settings;
  std::string action;
};

using Command = std::function<TextResult<void>(ControlClient&, const Options&, std::ostream&)>;

std::string encoded(std::string_view text) {
  return boost::urls::encode(text, boost::urls::unreserved_chars);
}

void print_json(const json::value& value, std::ostream& out) { out << json::serialize(value) << '\n'; }

TextResult<void> status(ControlClient& daemon, const Options& options, std::ostream& out) {
  const auto answer = daemon.get("/v1/status");
  if (answer.has_error()) return answer.error();
  options.json ? print_json(*answer, out) : show_status(*answer, out);
  return {};
}

struct FoundFlows {
  json::array flows;
  std::uint64_t live = 0;
};

TextResult<FoundFlows> find_flows(ControlClient& daemon, const Options& options, std::size_t wanted) {
  constexpr std::size_t kPage = 1000;  // the maximum of one response
  std::string filters;
  for (const auto& [name, value] : {std::pair("&peer=", &options.peer), std::pair("&client=", &options.client),
                                    std::pair("&server=", &options.server), std::pair("&reason=", &options.reason),
                                    std::pair("&search=", &options.search)})
    if (*value) filters += name + encoded(**value);
  if (options.port) filters += "&port=" + std::to_string(*options.port);
  FoundFlows found;
  for (json::value after = 0; !after.is_null() && found.flows.size() < wanted;) {
    const auto limit = std::min(kPage, wanted - found.flows.size());
    auto page =
        daemon.get("/v1/flows?limit=" + std::to_string(limit) + "&after=" + json::serialize(after) + filters);
    if (page.has_error()) return page.error();
    for (auto& flow : page->at("flows").as_array()) found.flows.push_back(std::move(flow));
    after = page->at("next");
    found.live = page->at("live").to_number<std::uint64_t>();
  }
  return found;
}

LiveScreen::Options live_options(const Options& options) {
  return {.interval = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options.interval_s)),
          .count = options.count};
}

TextResult<void> flows(ControlClient& daemon, const Options& options, std::ostream& out) {
  if (options.watch && options.json) return TextError{"--watch shows tables; call longhaul flows --json again instead"};
  if (options.watch) {
    constexpr std::size_t kMostRows = 500;  // more rows than any terminal
    const auto wanted = options.limit == 0 ? kMostRows : options.limit;
    LiveScreen screen{live_options(options), out};
    return screen.run(
        [&]() -> TextResult<std::string> {
          const auto found = find_flows(daemon, options, wanted);
          if (found.has_error()) return found.error();
          std::ostringstream text;
          show_flows(found->flows, found->live, text);
          return {boost::system::in_place_value, std::move(text).str()};
        },
        [](char) {});
  }
  auto found = find_flows(daemon, options, options.limit == 0 ? std::numeric_limits<std::size_t>::max() : options.limit);
  if (found.has_error()) return found.error();
  if (options.json)
    print_json(json::object{{"flows", std::move(found->flows)}, {"live", found->live}}, out);
  else
    show_flows(found->flows, found->live, out);
  return {};
}

TextResult<void> top(ControlClient& daemon, const Options& options, std::ostream& out) {
  Top view;
  if (options.json) {
    const auto status = daemon.get("/v1/status");
    if (status.has_error()) return status.error();
    const auto talkers = daemon.get("/v1/talkers?limit=100");
    if (talkers.has_error()) return talkers.error();
    print_json(json::object{{"status", *status}, {"clients", talkers->at("talkers")}}, out);
    return {};
  }
  LiveScreen screen{live_options(options), out};
  view.has_colour = screen.has_colour();
  std::optional<std::chrono::steady_clock::time_point> last;
  return screen.run(
      [&]() -> TextResult<std::string> {
        const auto status = daemon.get("/v1/status");
        if (status.has_error()) return status.error();
        const auto talkers = daemon.get("/v1/talkers?limit=100&by=" + view.by);
        if (talkers.has_error()) return talkers.error();
        const auto now = std::chrono::steady_clock::now();
        const double seconds = last ? std::chrono::duration<double>(now - *last).count() : 0;
        last = now;
        return {boost::system::in_place_value,
                view.frame(*status, *talkers, seconds) +
                    "\nq quits; c, s, p, l: group by client, server, port, link\n"};
      },
      [&](char key) {
        if (key == 'c') view.by = "client";
        if (key == 's') view.by = "server";
        if (key == 'p') view.by = "port";
        if (key == 'l') view.by = "peer";
      });
}

// For other machines' browsers: the certificate has this host's name rather than its addresses.
std::string tls_page(std::string_view listen) {
  const auto at = config::parse_host_port(listen, config::HostKind::address);
  if (at.has_error()) return std::string(listen);
  if (at->host != "0.0.0.0" && at->host != "::") return config::to_text(*at);
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return std::string(listen);
  return config::to_text({name.data(), at->port});
}

TextResult<void> page(ControlClient& daemon, const Options& options, std::ostream& out) {
  const auto status = daemon.get("/v1/status");
  if (status.has_error()) return status.error();
  const auto secret = daemon.secret();
  if (secret.has_error()) return secret.error();
  const std::string end = "/#token=" + encoded(*secret);
  const auto* const listen = status->get_object().if_contains("control_tls");
  json::object addresses{{"address", "http://" + options.control + end}, {"tls_address", nullptr}};
  if (listen != nullptr && listen->is_string()) addresses["tls_address"] = "https://" + tls_page(listen->get_string()) + end;
  if (options.json) {
    print_json(addresses, out);
  } else {
    for (const auto& [key, address] : addresses)
      if (address.is_string()) out << std::string_view(address.get_string()) << '\n';
  }
  return {};
}

TextResult<void> why(ControlClient& daemon, const Options& options, std::ostream& out) {
  const bool number = options.flow.find_first_not_of("0123456789") == std::string::npos && options.server_port.empty();
  const bool is_v6 = options.flow.find(':') != std::string::npos && !options.flow.starts_with('[');
  const std::string server = options.server_port.empty() ? options.flow
                             : (is_v6 ? "[" + options.flow + "]" : options.flow) + ":" + options.server_port;
  const bool is_server = !options.server_port.empty() || (flows::parse_tuple(server).has_error() &&
                         config::parse_host_port(server, config::HostKind::address_or_name).has_value());
  const std::string query = number ? "flow=" : is_server ? "server=" : "tuple=";
  const auto answer = daemon.get("/v1/why?" + query + encoded(server));
  if (answer.has_error()) return answer.error();
  options.json ? print_json(*answer, out) : show_why(*answer, out);
  return {};
}

TextResult<void> set(ControlClient& daemon, const Options& options, std::ostream& out) {
  json::object settings;
  for (const auto& setting : options.settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return TextError{"\"" + setting + "\" does not have the form FEATURE=VALUE, such as compression=false or preset=T"};
    settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  if (settings.empty()) {
    const auto answer = daemon.get("/v1/features");
    if (answer.has_error()) return answer.error();
    options.json ? print_json(*answer, out) : show_features(*answer, out);
    return {};
  }
  const auto answer = daemon.post("/v1/features", settings);
  if (answer.has_error()) return answer.error();
  options.json ? print_json(*answer, out) : show_changed(*answer, out);
  return {};
}

TextResult<void> clear_cache(ControlClient& daemon, const Options& options, std::ostream& out) {
  const bool objects = options.action == "objects";
  const auto answer = daemon.post("/v1/clear-cache", objects ? json::object{{"only", "objects"}} : json::object{});
  if (answer.has_error()) return answer.error();
  if (options.json)
    print_json(*answer, out);
  else if (objects)
    show_cleared_objects(*answer, out);
  else
    show_cleared(*answer, out);
  return {};
}

TextResult<void> reload(ControlClient& daemon, const Options& options, std::ostream& out) {
  const auto answer = daemon.post("/v1/reload", json::object{});
  if (answer.has_error()) return answer.error();
  options.json ? print_json(*answer, out) : show_reloaded(*answer, out);
  return {};
}

TextResult<void> intercept(ControlClient& daemon, const Options& options, std::ostream& out) {
  const bool print = options.action == "print";
  const auto answer = print ? daemon.get("/v1/intercept")
                            : daemon.post("/v1/intercept", json::object{{"action", options.action}});
  if (answer.has_error()) return answer.error();
  if (options.json)
    print_json(*answer, out);
  else if (print)
    show_rules(*answer, out);
  else
    out << "interception is " << answer->at("state").as_string().c_str() << '\n';
  return {};
}

class Steering {
 public:
  Steering(std::ostream& out, std::ostream& errors, int& exit_code)
      : out_(out), errors_(errors), exit_code_(exit_code) {}

  Options options;

  void run(const Command& command) {
    const auto done = try_to(command);
    exit_code_ = done ? 0 : 1;
    if (!done) errors_ << "longhaul: " << done.error().message << '\n';
  }

 private:
  TextResult<void> try_to(const Command& command) {
    if (!options.config.empty()) {
      const config::Config config = config::read(options.config, config::Files::ignore);
      return ask(ControlClient{daemon_of(config)}, command);
    }
    const auto address = config::parse_host_port(options.control, config::HostKind::address_or_name);
    if (address.has_error()) return TextError{"--control " + options.control + " " + address.error().message};
    return ask(ControlClient{{.address = *address, .token_file = options.state_dir / options.token_file}}, command);
  }

  TextResult<void> ask(ControlClient&& daemon, const Command& command) {
    try {
      return command(daemon, options, out_);
    } catch (const boost::system::system_error& error) {
      return TextError{"cannot read the daemon's answer (" + error.code().message() +
                       "); this program and the daemon may have different versions"};
    } catch (const std::out_of_range&) {
      return TextError{
          "the daemon's answer is incomplete; this program and the daemon may have different versions"};
    }
  }

  std::ostream& out_;
  std::ostream& errors_;
  int& exit_code_;
};

}  // namespace

void add_steering_commands(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code) {
  const auto steering = std::make_shared<Steering>(out, errors, exit_code);  // lives as long as the callbacks
  auto& options = steering->options;
  const auto add = [&](const std::string& name, const std::string& description, Command command) {
    auto* const sub = app.add_subcommand(name, description);
    auto* const file = sub->add_option("--config", options.config,
                                       "the daemon's configuration file; instead of --control, --state-dir and --token-file")
                           ->type_name("FILE");
    sub->add_option("--control", options.control, "the daemon's control address")
        ->type_name("ADDRESS:PORT")
        ->capture_default_str()
        ->excludes(file);
    sub->add_option("--state-dir", options.state_dir, "the daemon's state_dir, which holds the control token")
        ->type_name("DIR")
        ->capture_default_str()
        ->excludes(file);
    sub->add_option("--token-file", options.token_file, "the control token, relative to --state-dir")
        ->type_name("FILE")
        ->capture_default_str()
        ->excludes(file);
    sub->add_flag("--json", options.json, "print the daemon's answer as JSON");
    sub->callback([steering, command = std::move(command)] { steering->run(command); });
    return sub;
  };

  add("status", "Show the state of the running daemon: links, flows, limits, features", status);
  auto* const flows_command =
      add("flows", "List the live flows with their bytes and reason codes", flows);
  flows_command
      ->add_option("--peer", options.peer,
                   "only flows over the link to this peer; \"\" for flows that bypass the links")
      ->type_name("NAME");
  flows_command->add_option("--reason", options.reason, "only flows with this reason code")
      ->type_name("CODE");
  flows_command->add_option("--client", options.client, "only flows of this client")->type_name("ADDRESS|NETWORK");
  flows_command->add_option("--server", options.server, "only flows to this server")->type_name("ADDRESS|NETWORK|NAME");
  flows_command->add_option("--port", options.port, "only flows to this port")->type_name("PORT");
  flows_command->add_option("--search", options.search, "only flows with this text in client, server, peer, reason or module")
      ->type_name("TEXT");
  flows_command->add_option("--limit", options.limit, "list at most this many")->type_name("N");
  auto* const watch =
      flows_command->add_flag("--watch", options.watch, "update the list continuously; q quits");
  auto* const top_command = add("top", "Show links, rates and the largest clients, live; q quits", top);
  for (auto* const live : {flows_command, top_command}) {
    auto* const interval =
        live->add_option("--interval", options.interval_s, "seconds between updates of a live view")
            ->check(CLI::Range(0.1, 3600.0))
            ->type_name("S")
            ->capture_default_str();
    auto* const count =
        live->add_option("--count", options.count, "end a live view after this many frames")->type_name("N");
    if (live == flows_command)
      for (auto* const option : {interval, count}) option->needs(watch);
  }
  add("page", "Print the URL of the status page, with the token for changes; treat it like a password", page);
  auto* const why_command = add("why", "Explain why a flow is, is not, or would be optimised", why);
  why_command->add_option("flow", options.flow, "a flow's number; CLIENT:PORT-SERVER:PORT, such as 10.0.0.1:5000-10.0.2.2:445; or a server, before there is a flow")
      ->required()
      ->type_name("FLOW|TUPLE|SERVER");
  why_command->add_option("port", options.server_port, "of the server")->type_name("PORT");
  auto* const set_command = add("set", "Change features until the daemon restarts; without arguments, show them", set);
  set_command->add_option("settings", options.settings, "such as compression=false or preset=T")
      ->type_name("FEATURE=VALUE");
  auto* const clear_command =
      add("clear-cache", "Clear the deduplication dictionaries, in memory and on disk, at this site and its peers, and stored responses",
          clear_cache);
  clear_command->add_option("what", options.action, "objects: only the responses that the HTTP module has stored")
      ->check(CLI::IsMember({"objects"}))
      ->type_name("");
  add("reload", "Reload the configuration (keys, peers, rules, limits) without interrupting flows", reload);
  auto* const intercept_command =
      add("intercept", "Install (up), remove (down) or print the packet rules of transparent mode", intercept);
  intercept_command->add_option("action", options.action, "up, down or print")
      ->required()
      ->check(CLI::IsMember({"up", "down", "print"}))
      ->type_name("");
}

}  // namespace longhaul::cli
