// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/peer_dial.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

#include "proxy/link/io/cipher_choice.h"
#include "proxy/link/io/session_token.h"
#include "proxy/log/log.h"
#include "proxy/net/marks.h"

namespace longhaul::link {
namespace asio = boost::asio;
using namespace std::chrono_literals;
namespace {

constexpr auto kNameLimit = 10s;
constexpr Duration kConnectLimit = 10s, kHandshakeLimit = 10s;
// Limit for one path while there are others to try.
constexpr Duration kPathConnectLimit = 4s;
constexpr Duration kFirstBackOff = 250ms, kLastBackOff = 5s;

Duration with_jitter(Duration time) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return time * std::uniform_int_distribution<int>(75, 125)(random) / 100;
}

}  // namespace

PeerDial::PeerDial(LinkShared& shared, const config::Peer& peer, udp::UdpPaths& udp, Host& host)
    : shared_(shared),
      peer_(peer),
      udp_(udp),
      host_(host),
      timer_(shared.io),
      self_(std::make_shared<PeerDial*>(this)) {}

PeerDial::~PeerDial() { *self_ = nullptr; }

void PeerDial::start() { asio::co_spawn(shared_.io, keep_dialling(), asio::detached); }

void PeerDial::stop() {
  stopped_ = true;
  timer_.cancel();
}

std::optional<TlsEngine::KnownKey> PeerDial::find_key(const std::string& fingerprint) const {
  if (!peer_.has_key(fingerprint)) return std::nullopt;
  const auto secret = shared_.preshared.find(peer_.name);
  return TlsEngine::KnownKey{secret == shared_.preshared.end() ? nullptr : secret->second};
}

// If both ends dialled, the connection dialled by the lower fingerprint stays.
bool PeerDial::own_dial_stays(const TlsEngine& against) const {
  const bool lower = against.own_fingerprint() < against.peer_fingerprint();
  return lower && (state_ == State::greeting || host_.has_own_connection());
}

std::string PeerDial::expected_keys() const {
  std::string text;
  for (const std::string& key : peer_.fingerprints) text += (text.empty() ? "" : " or ") + key;
  return text;
}

void PeerDial::log_failure(const std::string& why) {
  if (why == last_error_) return;
  last_error_ = why;
  log::warn("link_failed", {{"peer", peer_.name}, {"reason", why}});
}

HelloFrame PeerDial::make_hello(const Token& session) const {
  HelloFrame hello{.session = session, .nonce = random_token(), .site = shared_.site};
  hello.blocks = shared_.make_codec ? kBlockVersion : 0;
  hello.modules = shared_.modules;
  for (const config::ModuleFeature& row : shared_.allowed.modules.table().rows())
    hello.features.emplace_back(row.name);
  return hello;
}

asio::awaitable<void> PeerDial::keep_dialling() {
  auto self = self_;
  Duration back_off = kFirstBackOff;
  while (*self && !stopped_) {
    bool connected = wants_to_dial() && co_await dial_once();
    if (!*self || stopped_) co_return;
    state_ = State::idle;
    if (connected) back_off = kFirstBackOff;
    bool idle = !wants_to_dial();
    timer_.expires_after(idle ? Duration(24h) : with_jitter(back_off));
    if (!idle) back_off = std::min(2 * back_off, kLastBackOff);
    boost::system::error_code woken;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    if (!*self) co_return;
    // The link went down: a short pause, so that a restarting peer is dialled soon, but not at once.
    if (woken) back_off = kFirstBackOff;
  }
}

asio::awaitable<std::optional<asio::ip::tcp::socket>> PeerDial::connect() {
  auto self = self_;
  // A reload may change the peer meanwhile.
  std::vector<config::PeerPath> paths = peer_.paths;
  if (paths.empty()) {
    const net::LocalEnd by_route;
    co_return co_await connect(*peer_.address, by_route, kConnectLimit);
  }
  std::ranges::stable_partition(paths, [&](const config::PeerPath& path) { return udp_.works(path.name); });
  for (const config::PeerPath& path : paths) {
    const auto local = net::LocalEnd::parse(path.local);
    auto socket = co_await connect(*path.address, local, kPathConnectLimit);
    if (!*self || stopped_ || socket) co_return socket;
  }
  co_return std::nullopt;
}

asio::awaitable<std::optional<asio::ip::tcp::socket>> PeerDial::connect(config::HostPort at,
                                                                        net::LocalEnd local, Duration most) {
  auto self = self_;
  const auto addresses = co_await shared_.resolver.resolve(at.host, kNameLimit);
  if (!*self || stopped_) co_return std::nullopt;
  if (!addresses) {
    log_failure("cannot resolve " + at.host + ": " + addresses.error().message());
    co_return std::nullopt;
  }
  boost::system::error_code error;
  asio::ip::tcp::socket socket(shared_.io);
  for (const auto& address : *addresses) {
    const asio::ip::tcp::endpoint endpoint(address, at.port);
    socket = asio::ip::tcp::socket(shared_.io);
    socket.open(endpoint.protocol(), error);
    if (error) continue;
    set_link_buffers(socket.native_handle());
    std::uint32_t mark = net::kOwnSocketMark;
    setsockopt(socket.native_handle(), SOL_SOCKET, SO_MARK, &mark, sizeof mark);
    if (!local.interface.empty()) error = net::use_interface(socket.native_handle(), local.interface);
    if (!error && !local.address.is_unspecified()) socket.bind({local.address, 0}, error);
    if (error) continue;
    asio::steady_timer limit(shared_.io, most);
    limit.async_wait([&socket](boost::system::error_code cancelled) {
      boost::system::error_code ignored;
      if (!cancelled) socket.close(ignored);
    });
    co_await socket.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
    if (!*self || stopped_) co_return std::nullopt;
    if (!error && socket.is_open()) co_return socket;
    if (error == asio::error::operation_aborted) error = asio::error::timed_out;
  }
  log_failure("cannot connect to " + config::to_text(at) + ": " + error.message());
  co_return std::nullopt;
}

asio::awaitable<bool> PeerDial::dial_once() {
  auto self = self_;
  state_ = State::connecting;
  auto socket = co_await connect();
  if (!*self || stopped_ || !socket) co_return false;
  TlsConnection connection(std::move(*socket), shared_.tls, Side::dialler, [self](const std::string& key) {
    return *self ? (*self)->find_key(key) : std::nullopt;
  });
  ++shared_.handshakes;
  auto shaken = co_await connection.handshake(kHandshakeLimit);
  --shared_.handshakes;
  if (!*self || stopped_) co_return false;
  if (!shaken && connection.tls().refusal() == Refusal::unknown_key) {
    log_failure("the host at " + connection.remote() + " presented the key " +
                connection.tls().peer_fingerprint() + ", but [[peer]] fingerprint is " + expected_keys() +
                "; if the new key is the peer's, configure it and run `longhaul reload`");
    connection.end();  // sends the alert, too
    co_return false;
  }
  if (!shaken) {
    std::string text = connection.tls().error_text();
    co_return log_failure("TLS handshake failed: " + (text.empty() ? shaken.error().message() : text)), false;
  }
  state_ = State::greeting;
  co_return co_await greet(std::move(connection));
}

asio::awaitable<bool> PeerDial::greet(TlsConnection connection) {
  auto self = self_;
  boost::system::error_code error;
  auto paths = co_await paths_to_offer();
  if (!*self || stopped_) co_return false;
  HelloFrame hello = make_hello(host_.resumable_session());
  UdpTerms terms;
  // Keys are never derived twice: without another epoch there is no UDP.
  if (last_epoch_ < kMaxEpoch) terms.endpoint = dialling_endpoint(connection);
  if (terms.endpoint) {
    hello.udp_port = terms.endpoint->port();
    hello.epoch = ++last_epoch_;
    hello.ciphers = udp::ciphers_to_offer(udp::choose_cipher());
    for (const UdpTerms::Path& path : paths) hello.paths.push_back(path.name);
  }
  if (auto sent = co_await connection.write_frame(hello); !sent) {
    if (*self && !stopped_) log_failure(sent.error().message());
    co_return false;
  }
  auto answer = co_await connection.read_frame(kHandshakeLimit);
  if (!*self || stopped_) co_return false;
  if (!answer) {
    // A peer that does not have our key ends the connection in its part of the handshake, which is detected
    // only here.
    if (connection.tls().refusal() == Refusal::rejected_by_peer)
      co_return log_failure(
          "the peer rejected the key of this site, " + connection.tls().own_fingerprint() +
          "; configure it as the fingerprint of this site's [[peer]] there and run `longhaul "
          "reload`"),
          false;
    std::string text = connection.tls().error_text();
    co_return log_failure(
        "the peer closed the connection: " + (text.empty() ? answer.error().message() : text) +
        "; see the peer's log for the reason"),
        false;
  }
  if (auto* close = std::get_if<CloseFrame>(&*answer))
    co_return log_failure("the peer refused the connection: " + close->text), false;
  auto* theirs = std::get_if<HelloFrame>(&*answer);
  if (!theirs || theirs->version != kProtocolVersion)
    co_return log_failure(make_error_code(LinkError::version_mismatch).message()), false;
  const bool resumed = hello.session != Token{} && theirs->session == hello.session;
  auto cipher = udp::cipher_answered(theirs->ciphers, hello.ciphers);
  if (theirs->udp_port == 0 || !cipher || theirs->epoch != hello.epoch) {
    terms.endpoint = nullptr;
  } else if (terms.endpoint) {
    terms.epoch = hello.epoch;
    terms.cipher = *cipher;
    terms.peer = {connection.socket().remote_endpoint(error).address(), theirs->udp_port};
    if (error) terms.endpoint = nullptr;
    terms.paths = PathAgreement::answered(std::move(paths), theirs->paths);
    agreement_.note(peer_, terms.paths);
  }
  const Token id = resumed ? hello.session : new_session_id(hello.nonce, theirs->nonce);
  if (!co_await host_.may_adopt(connection.tls().peer_fingerprint(), id, resumed)) co_return false;
  host_.adopt({std::move(connection), Side::dialler, id, terms, *theirs});
  co_return true;
}

udp::UdpEndpoint* PeerDial::dialling_endpoint(TlsConnection& connection) {
  boost::system::error_code error;
  auto local = connection.socket().local_endpoint(error);
  return error ? nullptr : udp_.dialling_endpoint({}, {}, local.address().is_v6());
}

// All paths, so that their numbers correspond to the names. A path that cannot be used now has no endpoint.
asio::awaitable<std::vector<UdpTerms::Path>> PeerDial::paths_to_offer() {
  auto self = self_;
  std::vector<UdpTerms::Path> offered;
  const std::vector<config::PeerPath> paths = peer_.paths;  // a reload may change them meanwhile
  for (const config::PeerPath& path : paths) {
    UdpTerms::Path& offer = offered.emplace_back(UdpTerms::Path{offered.size(), path.name, nullptr, {}});
    if (!path.address) continue;
    const auto addresses = co_await shared_.resolver.resolve(path.address->host, kNameLimit);
    if (!*self || stopped_) break;
    const auto local = net::LocalEnd::parse(path.local);
    const auto usable =
        addresses
            ? std::ranges::find_if(*addresses, [&](const auto& each) { return local.fits(each.is_v6()); })
            : std::vector<asio::ip::address>::const_iterator{};
    if (!addresses || usable == addresses->end()) {
      log::warn("path_unusable", {{"peer", peer_.name},
                                  {"path", path.name},
                                  {"reason", addresses ? "local and address are of different IP versions"
                                                       : "cannot resolve " + path.address->host + ": " +
                                                             addresses.error().message()}});
      continue;
    }
    offer.endpoint = udp_.dialling_endpoint(path.name, local, usable->is_v6());
    offer.peer = {*usable, path.address->port};
  }
  co_return offered;
}

asio::awaitable<void> PeerDial::accept(TlsConnection connection) {
  auto self = self_;
  auto frame = co_await connection.read_frame(kHandshakeLimit);
  if (!*self || stopped_) co_return;
  auto* hello = frame ? std::get_if<HelloFrame>(&*frame) : nullptr;
  if (!hello) {
    auto* close = frame ? std::get_if<CloseFrame>(&*frame) : nullptr;
    const std::string& said = connection.tls().error_text();
    log_failure(close ? "the peer refused the connection: " + close->text
                : frame
                    ? "the peer did not send HELLO"
                    : "no HELLO received from the peer: " + (said.empty() ? frame.error().message() : said));
    co_return connection.end();  // sends the alert, too, if there is one
  }
  if (hello->version != kProtocolVersion) {
    log_failure(make_error_code(LinkError::version_mismatch).message());
    connection.refuse(CloseCode::protocol_error, "this side supports only version 1 of the link protocol");
    co_return;
  }
  if (connection.tls().own_fingerprint() != shared_.tls.fingerprint())
    co_return connection.refuse(CloseCode::busy, "the key of this side has changed; reconnect");
  if (own_dial_stays(connection.tls()))
    co_return connection.refuse(CloseCode::duplicate, "already connected in the other direction");
  const Token own = host_.resumable_session();
  const bool resumed = own != Token{} && hello->session == own;
  if (!resumed && hello->session != Token{} && state_ == State::greeting) {
    // The peer resumes a session that our own dial is about to establish.
    co_return connection.refuse(CloseCode::busy, "busy; reconnect");
  }
  HelloFrame answer = make_hello(resumed ? own : Token{});
  UdpTerms terms;
  auto cipher = udp::cipher_to_answer(hello->ciphers, udp::choose_cipher());
  if (shared_.udp && hello->udp_port != 0 && cipher) {
    terms = {.endpoint = shared_.udp.get(), .epoch = hello->epoch, .cipher = *cipher};
    answer.udp_port = terms.endpoint->port();
    answer.epoch = terms.epoch;
    answer.ciphers = static_cast<std::uint8_t>(terms.cipher);
    last_epoch_ = std::max(last_epoch_, terms.epoch);
    terms.paths = PathAgreement::to_answer(hello->paths, peer_.paths, shared_.udp.get());
    for (const UdpTerms::Path& path : terms.paths) answer.paths.push_back(path.name);
    agreement_.note(peer_, terms.paths);
  }
  const Token id = resumed ? own : new_session_id(hello->nonce, answer.nonce);
  if (auto sent = co_await connection.write_frame(answer); !sent) co_return;
  if (!*self || stopped_ || !co_await host_.may_adopt(connection.tls().peer_fingerprint(), id, resumed))
    co_return;
  host_.adopt({std::move(connection), Side::acceptor, id, terms, *hello});
}

}  // namespace longhaul::link
