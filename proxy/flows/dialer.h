// SPDX-License-Identifier: Apache-2.0
// Connects to servers: resolves names, checks whether the address may be dialled, binds the address that the
// server should see, and returns the outcome. The caller runs the flow.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/flows/accepted.h"
#include "proxy/flows/own_addresses.h"
#include "proxy/flows/source_memory.h"
#include "proxy/net/name_resolver.h"

namespace longhaul::flows {

struct DialerConfig {
  std::vector<config::Network> allow;               // [link] allow
  std::chrono::milliseconds name_limit{10'000};     // one look-up, all name servers
  std::chrono::milliseconds connect_limit{20'000};  // all addresses together; SYNs at 0, 1, 3, 7 and 15 s
  // For one of several addresses, while others are left: time for two SYNs, and a round trip of 2 s for the
  // second.
  std::chrono::milliseconds address_limit{3'000};
  // How long to wait for a reply to the client's address before the proxy's own is tried (source = auto).
  std::chrono::milliseconds client_address_limit{3'000};
};

struct DialRequest {
  // The origin of a request, which determines the checks after names are resolved.
  enum class Check : std::uint8_t {
    nothing,  // the destination is configured (forwards)
    client,   // requested by this site's client (SOCKS5, transparent): not this machine's own addresses
    peer,     // requested by a peer: only addresses in [link] allow
  };
  Destination destination{};
  std::optional<boost::asio::ip::tcp::endpoint> client{};  // needed by source client and auto; else unused
  config::Source source = config::Source::proxy;
  Check check = Check::peer;
  // An additional check of each address, after names are resolved; empty: all may be dialled.
  std::function<bool(const boost::asio::ip::address&)> may_dial{};
};

struct Dialled {
  explicit Dialled(const boost::asio::any_io_executor& executor) : socket(executor) {}

  ConnectOutcome outcome = ConnectOutcome::failed;
  boost::asio::ip::tcp::socket socket;    // connected if the outcome is `connected`, else closed
  boost::asio::ip::tcp::endpoint server;  // the address connected to, or tried last
  bool source_fallback = false;           // source = auto, but the server sees this proxy's address
  boost::system::error_code error;        // the system's error behind the outcome, for logs

  bool connected() const { return outcome == ConnectOutcome::connected; }
};

class Dialer {
 public:
  explicit Dialer(DialerConfig config) : config_(std::move(config)) {}

  // Completes within name_limit + connect_limit. Cancelling the coroutine ends it with `failed`. Build the
  // request in a statement of its own: g++ 12 destroys an aggregate twice that is built inside a co_await
  // expression.
  boost::asio::awaitable<Dialled> dial(DialRequest request);

  // Checks the current configuration and the request's own condition.
  bool may_dial(const DialRequest& request, const boost::asio::ip::address& address);

  // Whether replies to clients' addresses return to this process. If no rules divert them, `auto` uses the
  // proxy's address at once, and `client` fails at once.
  void show_clients(bool can) { can_show_clients_ = can; }
  // Replaces the networks that peers may connect to.
  void allow(std::vector<config::Network> networks) { config_.allow = std::move(networks); }

 private:
  struct Attempt;
  bool can_show_client(const DialRequest& request, const boost::asio::ip::address& server);
  boost::asio::awaitable<void> dial_address(const DialRequest& request, std::chrono::milliseconds limit,
                                            Dialled& result);

  DialerConfig config_;
  net::NameResolver resolver_;
  OwnAddresses own_;
  SourceMemory memory_;
  bool can_show_clients_ = true;
};

}  // namespace longhaul::flows
