// SPDX-License-Identifier: Apache-2.0
// The link to one peer: dials it again whenever it is gone, takes the connections that the peer dials,
// resumes the session over a new connection or begins a new one, and brings the session's events to the
// flows. Which flow goes where is decided in proxy/flows.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "codecs/keyed_hash.h"
#include "codecs/reduction/reduction.h"
#include "proxy/config/config.h"
#include "proxy/link/encode_relief.h"
#include "proxy/link/io/tcp_carrier.h"
#include "proxy/link/io/udp_paths.h"
#include "proxy/link/reduction_totals.h"
#include "proxy/link/status.h"
#include "proxy/net/name_resolver.h"

namespace longhaul::link {

class PeerLink;

// What all links of a daemon share; outlives them.
struct LinkShared {
  boost::asio::io_context& io;
  const TlsContext& tls;
  const config::Link& config;
  std::string site;
  identity::PresharedKeys preshared;
  CreditPool& pool;
  RetainedBudget& retained;
  config::Features allowed;       // by this side, for any flow
  std::uint32_t max_streams = 0;  // that one peer may have open
  TotalRate total_rate;
  std::vector<ModuleName> modules{};  // whose halves this side has
  // Makes one for each session with a peer that makes and reads blocks, too; `tls` tells the keys of both.
  // None: nobody here does.
  std::function<std::unique_ptr<reduction::Reduction>(const config::Peer&, const TlsEngine& tls,
                                                      const BlockChecksum&)>
      make_codec{};
  // The peer has proved its key from there.
  std::function<void(const PeerLink&, const boost::asio::ip::address&)> on_connected{};
  std::function<void(const PeerLink&)> on_peer_allows{};  // what the peer allows has changed
  // It is no longer `up`: told from the loop, like events.
  std::function<void(PeerLink&)> on_link_lost{};
  // Flows are still being decided anew for that: until they are, their streams are left as they are.
  std::function<bool(const PeerLink&)> decides_anew{};
  // It is not, the peer's end of the control connection was closed, and nothing came since: its process has
  // ended. One that came back as another process is no surprise.
  std::function<void(PeerLink&)> on_peer_gone{};
  // That may be so, or not: PeerLink::perhaps_gone().
  std::function<void(PeerLink&)> on_peer_doubted{};
  std::uint32_t handshakes = 0;  // TLS handshakes in progress, all links
  // Of the links alone: names that clients ask for cannot hold up those of peers.
  net::NameResolver resolver{};
  // On the address where the control connections are taken, too; null: this site only dials.
  std::unique_ptr<udp::UdpEndpoint> udp{};
};

// A flow on the link. Told from the loop, never from inside a call that the flow itself makes.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  // After EventKind::reset the stream must be released and not touched again.
  virtual void on_stream_event(EventKind kind) = 0;
};

class PeerLink final : private CarrierOwner {
 public:
  // `on_opened` is called for a stream that the peer opened; it gives the stream its user.
  using OnOpened = std::function<void(PeerLink&, Stream&)>;
  PeerLink(LinkShared& shared, const config::Peer& peer, OnOpened on_opened);
  ~PeerLink() override;

  const config::Peer& peer() const { return peer_; }
  // What this side has beside that key of the peer's; nothing: it is none of them.
  std::optional<TlsEngine::KnownKey> find_key(const std::string& fingerprint) const;
  // Dials from now on, while the peer has an address.
  void start();
  // The peer's entry in the configuration has changed. What needs a new connection or a new session to change
  // waits for one; a connection that was made with a key that is not among the peer's any more ends at once,
  // and with it the session.
  void update(const config::Peer& peer);
  // This site's key has changed: connects anew and gives up the old connection once there is another, or,
  // where the peer dialled it, ends the old one so that the peer dials again. The session goes on.
  void renew();
  // Tells the peer and closes; nothing is dialled any more.
  void stop();

  // The peer dialled us and showed its key; decides by its HELLO.
  boost::asio::awaitable<void> accept(TlsConnection connection);

  // The peer's end of the control connection was closed, and it is not settled yet whether its process has
  // ended.
  bool perhaps_gone() const { return perhaps_gone_; }
  LinkState state() const;
  bool usable() const { return state() == LinkState::up; }
  // The memory cap leaves no room for another stream.
  bool memory_used_up() const { return shared_.pool.used_up() || shared_.retained.used_up(); }
  LinkStatus status() const;
  // Valid while usable(), and for every stream until its user is told of the reset and has released it.
  Session& session() { return *session_; }
  const Session* session_if_any() const { return session_.get(); }
  // What is known of the line to this peer, for the next daemon; and what the last one knew.
  std::optional<udp::PathMemory> path_memory() const { return udp_.memory(); }
  void recall(const udp::PathMemory& memory) { udp_.recall(memory); }
  void give_user(StreamId stream, StreamUser& user) { users_[stream] = &user; }
  bool peer_has_module(std::string_view name, std::uint64_t version) const;
  // The flow is done with its stream, or with a stream that was reset.
  void release(StreamId stream);
  // Something was written, consumed or opened.
  void kick();
  // Both dictionaries of the session are emptied, here and on the peer's side, and so is the peer's disk, of
  // what this link could use. Answers how many bytes the two held here. This side's disk is to be cleared
  // after this.
  std::uint64_t clear_dictionaries();
  // How many bytes the peer dropped from its disk for that; nothing as long as it has not said so.
  std::optional<std::uint64_t> cleared_by_peer() const;
  // What the peer may read of the disk dictionary is another now.
  void set_rights(reduction::SegmentRights rights);
  // Memory that the session's histories take.
  std::uint64_t dictionary_bytes() const { return codec_ ? codec_->memory_bytes() : 0; }
  // About once a second, while there is a disk dictionary: what was sent goes there when nothing follows it.
  void on_second();
  // The session is about to end: all that was sent so far goes there now, on both sides.
  void finish();
  // Whether that is done, or will never be.
  bool finished() const;
  // What a dictionary waited for is there: streams may go on.
  void on_codec_ready();
  // LinkShared::allowed has changed: tells the peer, and changes the path where that is asked for.
  void apply_features();

 private:
  // CarrierOwner
  void after_activity() override;
  void on_carrier_closed(CarrierId id, const std::string& why, EndedBy by) override;

  boost::asio::awaitable<void> keep_dialling();
  boost::asio::awaitable<bool> dial_once();
  bool wants_to_dial() const;
  bool own_dial_stays(const TlsEngine& against) const;
  std::string expected_keys() const;
  // What the two HELLOs say of packets; no endpoint: there will be none.
  struct UdpTerms {
    udp::UdpEndpoint* endpoint = nullptr;
    std::uint64_t epoch = 0;
    udp::Cipher cipher = udp::Cipher::aes_128_gcm;
    UdpAddress peer;  // unspecified where we did not dial
  };
  void adopt(TlsConnection connection, const Token& session_id, Side side, const UdpTerms& terms,
             const HelloFrame& theirs);
  std::uint64_t own_blocks() const { return shared_.make_codec ? kBlockVersion : 0; }
  void begin_udp(TlsConnection& connection, Side side, const UdpTerms& terms);
  udp::UdpEndpoint* dialling_endpoint(TlsConnection& connection);
  void choose_carrier();
  void count_for_total_rate();
  void work_for_codec();
  void relieve_processor();
  void go_on();
  void go_on_later();
  // A session that is over ends in several turns of the loop; no other begins before that.
  void end_session();
  void end_more_later();
  void end_more();
  boost::asio::awaitable<bool> may_adopt(std::string key, Token session_id, bool resumes);
  void drop_carriers(CloseCode code, const std::string& why);
  void deliver_events();
  void note_state();
  void watch_for_end();
  void arm_timer();
  void log_failure(const std::string& why);

  LinkShared& shared_;
  config::Peer peer_;
  OnOpened on_opened_;
  std::unique_ptr<reduction::Reduction> codec_;  // of the session, which it outlives
  ReductionTotals reduction_totals_;
  std::uint64_t blocks_at_last_second_ = 0;
  EncodeRelief relief_;
  std::unique_ptr<Session> session_;
  Token session_id_{};
  std::vector<ModuleName> peer_modules_;               // of the session's peer
  std::vector<std::unique_ptr<TcpCarrier>> carriers_;  // the last one is the newest
  bool carrier_dialled_here_ = false;
  std::string peer_key_;     // that the peer showed on the newest connection
  bool wants_anew_ = false;  // a connection with this site's new key
  CarrierId last_carrier_ = 0;
  udp::UdpPaths udp_;
  std::uint64_t last_epoch_ = 0;  // of UDP keys
  KeyedMap<StreamId, StreamUser*> users_;

  enum class Dial : std::uint8_t { idle, connecting, saying_hello } dial_ = Dial::idle;
  boost::asio::steady_timer session_timer_;
  std::optional<TimePoint> timer_at_;
  boost::asio::steady_timer dial_timer_;
  boost::asio::steady_timer ended_timer_;  // never due; cancelled when the session has ended
  std::shared_ptr<PeerLink*> self_;
  bool codec_works_ = false;  // posted
  bool goes_on_ = false;      // what waits for another turn has one coming
  bool delivering_ = false, ending_ = false, stopped_ = false;
  bool counted_ = false;  // among those that share the total rate
  // The peer ended the last control connection, and nothing was heard since.
  bool perhaps_gone_ = false;
  boost::asio::steady_timer gone_timer_;

  bool ever_up_ = false;
  TimePoint state_since_;
  LinkState last_state_ = LinkState::never_up;
  std::string last_error_;
  std::uint64_t carriers_attached_ = 0;
  std::uint64_t closed_bytes_sent_ = 0, closed_bytes_received_ = 0;
};

}  // namespace longhaul::link
