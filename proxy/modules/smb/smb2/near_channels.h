// SPDX-License-Identifier: Apache-2.0
// The near half's part for multichannel ([MS-SMB2] section 3.3.5.5.2): the local responses of a connection
// are right only while no other connection carries requests of its session. So if one binds itself to a
// session, every other connection of that session steps aside before the binding is passed on. A connection
// that bypasses the pair is invisible: if the server has an address for it nothing is promised
// (may_be_bypassed()). connection.h decides whether one session's own requests may be changed.
#pragma once
#include <map>
#include <set>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class NearChannels;

// The connections of each session, for all flows of a site, which run in one thread. Two servers may use the
// same numbers: then two unrelated connections step aside.
class Channels {
 public:
  struct Key {
    Guid client{};
    SessionId session = 0;
    auto operator<=>(const Key&) const = default;
  };
  void add(const Key& key, NearChannels& channel) { channels_[key].insert(&channel); }
  void remove(const Key& key, NearChannels& channel);
  // Another connection binds itself to the session. Returns false if it could overtake outstanding promises.
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
  // Processes Paths.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;

  // As Channels::bound().
  bool bound_elsewhere(SessionId session);
  // Whether the client could bind a connection to this session that bypasses the pair; nullopt: unknown, or
  // the client is just querying the server's addresses.
  std::optional<bool> may_be_bypassed(SessionId session) const;

 private:
  NearSide& side_;
  std::shared_ptr<Channels> channels_;
  Guid client_{};
  std::set<Channels::Key> carried_;
  KeyedMap<SessionId, bool> others_;  // as reported by Paths
};

}  // namespace longhaul::smb::smb2
