// SPDX-License-Identifier: Apache-2.0
// The near half's part for multichannel ([MS-SMB2] section 3.3.5.5.2): what one connection of a session
// answers by itself is right only as long as no other carries requests of that session. So where one binds
// itself to a session, every other connection of that session steps aside before the binding goes on. A
// connection that goes past the pair is not seen: where the server has an address for it nothing is promised
// (may_be_bypassed()). Whether one session's own requests may be touched is connection.h's.
#pragma once
#include <map>
#include <set>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class NearChannels;

// Who carries which session, for all flows of a site, which are in one thread. A server's numbers may be
// another's, too: then two that have nothing to do with each other step aside.
class Channels {
 public:
  struct Key {
    Guid client{};
    SessionId session = 0;
    auto operator<=>(const Key&) const = default;
  };
  void add(const Key& key, NearChannels& channel) { channels_[key].insert(&channel); }
  void remove(const Key& key, NearChannels& channel);
  // Another connection binds itself to the session. False: promises are outstanding that it could overtake.
  bool bound(const Key& key, const NearChannels& by);

 private:
  std::map<Key, std::set<NearChannels*>> channels_;
};

class NearChannels final : public NearPart {
 public:
  NearChannels(NearSide& side, std::shared_ptr<Channels> channels)
      : side_(side), channels_(std::move(channels)) {}
  ~NearChannels() override;
  NearChannels(const NearChannels&) = delete;
  NearChannels& operator=(const NearChannels&) = delete;

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_request(TimePoint, const Message&, const Changes&) override { return Taken::no; }
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  // Paths.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;

  // As Channels::bound().
  bool bound_elsewhere(SessionId session);
  // Whether the client could bind a connection to this session that does not pass the pair; none: not known
  // yet, or the client is just asking the server for its addresses.
  std::optional<bool> may_be_bypassed(SessionId session) const;

 private:
  NearSide& side_;
  std::shared_ptr<Channels> channels_;
  Guid client_{};
  std::set<Channels::Key> carried_;
  KeyedMap<SessionId, bool> others_;  // as Paths told
};

}  // namespace longhaul::smb::smb2
