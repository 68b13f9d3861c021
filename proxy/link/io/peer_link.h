// SPDX-License-Identifier: Apache-2.0
// The link to one peer: continues its session on a new connection or begins another, and knows whether flows
// may use it. peer_dial.h makes connections, link_carriers.h chooses the one that sends, session_host.h runs
// the session, and proxy/flows routes flows.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "proxy/link/io/link_carriers.h"
#include "proxy/link/io/peer_dial.h"
#include "proxy/link/io/peer_doubt.h"
#include "proxy/link/io/session_host.h"
#include "proxy/link/io/state_history.h"

namespace longhaul::link {

class PeerLink final : private CarrierOwner, private SessionHost::Owner, private PeerDial::Host {
 public:
  // `on_opened` is called for a stream that the peer opened; it attaches the stream's user.
  using OnOpened = std::function<void(PeerLink&, Stream&)>;
  PeerLink(LinkShared& shared, const config::Peer& peer, OnOpened on_opened);
  ~PeerLink() override;

  const config::Peer& peer() const { return peer_; }
  // The local side of a key of the peer's; no result: the key is none of them.
  std::optional<TlsEngine::KnownKey> find_key(const std::string& fingerprint) const {
    return dial_.find_key(fingerprint);
  }
  // Dials from now on, while the peer has an address.
  void start() { dial_.start(); }
  // The peer dialled this side and showed its key; its HELLO decides.
  boost::asio::awaitable<void> accept(TlsConnection connection) {
    return dial_.accept(std::move(connection));
  }
  // The peer's entry in the configuration has changed. Settings that need a new connection or a new session
  // wait for one; a connection with a key that is no longer one of the peer's ends at once, and with it the
  // session.
  void update(const config::Peer& peer);
  // This site's key has changed: connects again and closes the old connection once there is a new one, or, if
  // the peer dialled it, closes it so that the peer dials again. The session continues.
  void renew();
  // Tells the peer and closes; nothing is dialled any more.
  void stop();

  // The peer's end of the control connection was closed, and it is not known yet whether its process has
  // ended.
  bool perhaps_gone() const { return doubt_.is_in_doubt(); }
  LinkState state() const;
  bool usable() const { return state() == LinkState::up; }
  // The memory cap leaves no room for another stream.
  bool memory_used_up() const { return shared_.pool.used_up() || shared_.retained.used_up(); }
  LinkStatus status() const;
  bool peer_has_module(std::string_view name, std::uint64_t version) const;

  // Valid while usable(), and for every stream until its user is told of the reset and has released it.
  Session& session() { return *host_.session(); }
  const Session* session_if_any() const { return host_.session(); }
  void give_user(StreamId stream, StreamUser& user) { host_.give_user(stream, user); }
  // The flow is done with its stream, or with a stream that was reset.
  void release(StreamId stream);
  // Something was written, consumed or opened.
  void kick() override;
  // The current measurements of the lines to this peer, and an earlier daemon's.
  std::vector<udp::LineMemory> line_memories() const { return carriers_.udp().memories(); }
  void recall(const udp::LineMemory& line) { carriers_.udp().recall(line); }

  // Another one after a session was lost.
  const Token& session_id() const { return host_.id(); }
  // The dictionaries of the session.
  SessionCodec& dictionary() { return host_.codec(); }
  // Something that the session's codec waited for has arrived: streams may continue.
  void on_codec_ready() { host_.on_codec_ready(); }
  // The session is about to end: all data sent so far is stored on disk now, on both sides.
  void finish();
  // Whether that is done, or will never be.
  bool finished() const;
  // LinkShared::allowed has changed: tells the peer, and changes the path if that is requested.
  void apply_features();

 private:
  // CarrierOwner
  void on_carrier_closed(CarrierId id, const std::string& why, EndedBy by) override;
  // CarrierOwner and SessionHost::Owner
  void after_activity() override;
  // SessionHost::Owner
  void on_opened(Stream& stream) override { on_opened_(*this, stream); }
  void on_session_event(const Event& event) override;
  void on_failure(const std::string& why) override { dial_.log_failure(why); }
  bool keeps_streams() const override { return shared_.decides_anew && shared_.decides_anew(*this); }
  // PeerDial::Host
  bool wants_connection() const override;
  Token resumable_session() const override { return host_.resumable() ? host_.id() : Token{}; }
  bool has_own_connection() const override;
  boost::asio::awaitable<bool> may_adopt(std::string key, Token session, bool resumes) override;
  void adopt(Agreed agreed) override;

  bool begin_session(Agreed& agreed);
  void choose_carrier();
  void deliver_events();
  void end_session();
  void note_state();
  std::vector<UnlikeModule> unlike_modules() const;

  LinkShared& shared_;
  config::Peer peer_;
  OnOpened on_opened_;
  SessionHost host_;
  LinkCarriers carriers_;  // end before the session
  PeerDial dial_;
  std::vector<ModuleName> peer_modules_;  // of the session's peer
  bool carrier_dialled_here_ = false;
  std::string peer_key_;        // shown by the peer on the newest connection
  bool wants_new_key_ = false;  // a connection with this site's new key
  bool stopped_ = false;
  PeerDoubt doubt_;  // the peer ended the last control connection, and nothing arrived since
  StateHistory states_;
  std::shared_ptr<PeerLink*> self_;
};

}  // namespace longhaul::link
