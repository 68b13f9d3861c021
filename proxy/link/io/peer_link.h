// SPDX-License-Identifier: Apache-2.0
// The link to one peer: continues its session on a new connection or begins another, and decides whether
// flows may use it. peer_dial.h makes connections, link_carriers.h chooses the one that sends, session_host.h
// runs the session, and proxy/flows routes flows.
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
  // This side's data for a key of the peer; nullopt if the peer does not have this key.
  std::optional<TlsEngine::KnownKey> find_key(const std::string& fingerprint) const {
    return dial_.find_key(fingerprint);
  }
  // From now on, dials the peer if it has an address.
  void start() { dial_.start(); }
  // The peer dialled this side and presented its key. Its HELLO decides what follows.
  boost::asio::awaitable<void> accept(TlsConnection connection) {
    return dial_.accept(std::move(connection));
  }
  // The peer's entry in the configuration has changed. Settings that need a new connection or a new session
  // wait for one; a connection with a key that the peer no longer has ends at once, and its session, too.
  void update(const config::Peer& peer);
  // This site's key has changed: connects again and closes the old connection once there is a new one, or, if
  // the peer dialled it, closes it so that the peer dials again. The session continues.
  void renew();
  // Notifies the peer and closes; does not dial again.
  void stop();

  // The peer's end of the control connection was closed, and it is not yet decided whether its process has
  // ended.
  bool perhaps_gone() const { return doubt_.is_in_doubt(); }
  LinkState state() const;
  bool usable() const { return state() == LinkState::up; }
  // Whether the memory limit leaves no room for another stream.
  bool memory_used_up() const { return shared_.pool.used_up() || shared_.retained.used_up(); }
  LinkStatus status() const;
  bool peer_has_module(std::string_view name, std::uint64_t version) const;

  // Valid while usable(), and for every stream until its user was notified of the reset and has released it.
  Session& session() { return *host_.session(); }
  const Session* session_if_any() const { return host_.session(); }
  void give_user(StreamId stream, StreamUser& user) { host_.give_user(stream, user); }
  // The flow has finished with its stream, or with a stream that was reset.
  void release(StreamId stream);
  // To be called after writing to, reading from or opening a stream.
  void kick() override;
  // The current measurements of the lines to this peer, and an earlier daemon's.
  std::vector<udp::LineMemory> line_memories() const { return carriers_.udp().memories(); }
  void recall(const udp::LineMemory& line) { carriers_.udp().recall(line); }

  // Changes after a session was lost.
  const Token& session_id() const { return host_.id(); }
  // The dictionaries of the session.
  SessionCodec& dictionary() { return host_.codec(); }
  // Data that the session's codec waited for has arrived: streams may continue.
  void on_codec_ready() { host_.on_codec_ready(); }
  // The session will end soon: stores all data sent so far on disk, on both sides.
  void finish();
  // Whether finish() is complete, or can never be.
  bool finished() const;
  // LinkShared::allowed has changed: notifies the peer, and changes the carrier if required.
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
  LinkCarriers carriers_;  // destroyed before the session
  PeerDial dial_;
  std::vector<ModuleName> peer_modules_;  // of the session's peer
  bool carrier_dialled_here_ = false;
  std::string peer_key_;        // presented by the peer on the newest connection
  bool wants_new_key_ = false;  // a connection with this site's new key is wanted
  bool stopped_ = false;
  PeerDoubt doubt_;  // the peer ended the last control connection, and nothing arrived since
  StateHistory states_;
  std::shared_ptr<PeerLink*> self_;
};

}  // namespace longhaul::link
