// SPDX-License-Identifier: Apache-2.0
// Makes connections to a peer: dials with a back-off, accepts the peer's, and exchanges HELLO, which decides
// whether the session continues (PROTOCOL.md, section 2). The host decides how a connection is used.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "proxy/link/io/link_shared.h"
#include "proxy/link/io/path_agreement.h"
#include "proxy/link/io/udp_paths.h"
#include "proxy/net/local_end.h"

namespace longhaul::link {

// A connection on which both sides have sent HELLO.
struct Agreed {
  TlsConnection connection;
  Side side;
  Token session;
  UdpTerms udp;
  HelloFrame theirs;
};

class PeerDial {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual bool wants_connection() const = 0;
    // The session that a new connection may continue; zero if there is none.
    virtual Token resumable_session() const = 0;
    // Whether there is a working connection that this side dialled.
    virtual bool has_own_connection() const = 0;
    // Returns false if the connection is no longer useful. `resumes`: both sides continue an existing
    // session.
    virtual boost::asio::awaitable<bool> may_adopt(std::string key, Token session, bool resumes) = 0;
    virtual void adopt(Agreed agreed) = 0;
  };

  // All references outlive this object; `peer` may change.
  PeerDial(LinkShared& shared, const config::Peer& peer, udp::UdpPaths& udp, Host& host);
  ~PeerDial();
  PeerDial(const PeerDial&) = delete;
  PeerDial& operator=(const PeerDial&) = delete;

  // From now on, dials whenever a connection is wanted and the peer has an address.
  void start();
  // The state has changed, so a connection may be wanted now.
  void wake() { timer_.cancel(); }
  void stop();
  // The peer dialled this side and presented its key.
  boost::asio::awaitable<void> accept(TlsConnection connection);

  // This side's data for a key of the peer; nullopt if the peer does not have this key.
  std::optional<TlsEngine::KnownKey> find_key(const std::string& fingerprint) const;

  // Logs a failure, unless it repeats the previous one.
  void log_failure(const std::string& why);
  void set_last_error(const std::string& why) { last_error_ = why; }
  const std::string& last_error() const { return last_error_; }

 private:
  boost::asio::awaitable<void> keep_dialling();
  boost::asio::awaitable<bool> dial_once();
  boost::asio::awaitable<std::optional<boost::asio::ip::tcp::socket>> connect();
  boost::asio::awaitable<std::optional<boost::asio::ip::tcp::socket>> connect(config::HostPort at,
                                                                              net::LocalEnd local,
                                                                              Duration most);
  boost::asio::awaitable<std::vector<UdpTerms::Path>> paths_to_offer();
  boost::asio::awaitable<bool> greet(TlsConnection connection);
  bool wants_to_dial() const { return peer_.address && host_.wants_connection(); }
  bool own_dial_stays(const TlsEngine& against) const;
  std::string expected_keys() const;
  HelloFrame make_hello(const Token& session) const;
  udp::UdpEndpoint* dialling_endpoint(TlsConnection& connection);

  LinkShared& shared_;
  const config::Peer& peer_;
  udp::UdpPaths& udp_;
  Host& host_;
  enum class State : std::uint8_t { idle, connecting, greeting } state_ = State::idle;
  boost::asio::steady_timer timer_;
  std::uint64_t last_epoch_ = 0;  // of UDP keys
  std::string last_error_;
  PathAgreement agreement_;
  bool stopped_ = false;
  std::shared_ptr<PeerDial*> self_;
};

}  // namespace longhaul::link
