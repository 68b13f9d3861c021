// SPDX-License-Identifier: Apache-2.0
// The far half's connection to the server: which ids the client's requests and our own have there, which of
// them wait for ids, and which responses belong to our own requests. message_ids.h has the available ids.
#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "proxy/modules/smb/smb2/far_oplocks.h"
#include "proxy/modules/smb/smb2/message_ids.h"
#include "proxy/modules/smb/smb2/own_requests.h"

namespace longhaul::smb::smb2 {

class ServerLeg final : public OwnRequests {
 public:
  // `oplocks`: for requests to which an oplock is added as they are sent.
  ServerLeg(Outputs& out, Connection& connection, FarOplocks& oplocks, modules::Counters& counters)
      : out_(out), connection_(connection), oplocks_(oplocks), counters_(counters) {}

  // The client began with an SMB1 NEGOTIATE that is answered with SMB2, which has used id 0.
  void begun_with_smb1() { (void)ids_.forward(MessageId{0}, 1, MessageIds::Renumber::forbidden); }
  void set_features(const Features& features) { features_ = features; }

  // ---- the client's requests
  // Sends after those that wait for ids. A CANCEL is sent after its target.
  void send(const Message& message);
  // The client has used up these ids without a request to the server.
  void bank(MessageId id, std::uint16_t charge);
  // Sends those for which ids are free now. Returns true if none waits any more.
  bool send_waiting();
  bool has_waiting() const { return !waiting_.empty(); }
  std::size_t queued_bytes() const { return queued_bytes_; }

  // ---- the server's messages, in this order
  void granted(const Message& message);
  bool answers_own(TimePoint now, const Message& message);
  // Any other message, with the client's ids.
  Message in_clients_numbers(Message message);

  // ---- requests of our own
  bool inject(SessionId session, TreeId tree, std::uint16_t charge, const Build& build, Reply reply) override;
  bool inject_awaited(SessionId session, TreeId tree, const Build& build, Reply reply) override;
  bool inject_owed(SessionId session, TreeId tree, const Build& build) override;
  bool acknowledge(SessionId session, TreeId tree, const Build& build) override;
  bool listen(SessionId session, TreeId tree, const Build& build, Begun begun, Reply reply) override;
  bool can_inject(std::uint16_t charge) const override;
  bool has_own() const { return !own_.empty() || !listening_.empty(); }
  bool is_own(MessageId id) const { return own_.contains(id) || listening_.contains(id); }
  // Whether a response is under way that may free ids.
  bool may_free_ids() const { return own_.size() > beginning_.size() || at_server_.size() > pended_.size(); }

  // ---- ends
  // The client's bytes, or the server's, can no longer be parsed: nothing is added.
  void set_opaque() { is_opaque_ = true; }
  bool is_opaque() const { return is_opaque_; }
  // ended: the client sends nothing more; is_told: and the server was informed.
  enum class Client : std::uint8_t { sends, ended, is_told };
  void set_client(Client client) { client_ = client; }
  // The client's ids form too many runs: MessageIds::is_scattered().
  bool is_scattered() const { return ids_.is_scattered(); }
  // Whether a request could not be sent, and never can be; true once, as soon as nothing is promised: then
  // the connection ends.
  bool take_doom() { return std::exchange(is_doomed_, false); }
  // Whether a client's request waits for ids that the server never grants (against 3.3.1.2), and all later
  // ones behind it, promised ones included: the connection ends at once.
  bool is_stuck() const;

 private:
  // A client's request in progress: the ids that its elements have so far.
  struct Outgoing {
    Message message;
    std::vector<MessageId> ids;
  };
  enum class Sent : std::uint8_t { yes, waits };
  Sent try_send(Outgoing& outgoing);
  Sent choose_ids(Outgoing& outgoing, MessageIds::Renumber renumber);
  void cancel(const Message& message);
  void wait(Outgoing outgoing);
  // `keep`: free ids reserved for the client.
  std::optional<MessageId> add(SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
                               Reply reply, std::uint64_t keep);
  bool owe(SessionId session, TreeId tree, const Build& build, std::uint64_t keep);
  std::uint64_t kept_for_client() const;
  std::uint64_t kept_from_awaited() const { return may_free_ids() ? kept_for_client() : 0; }
  std::uint16_t lacking() const;
  void burn();

  Outputs& out_;
  Connection& connection_;
  FarOplocks& oplocks_;
  modules::Counters& counters_;
  Features features_;
  MessageIds ids_;
  KeyedMap<MessageId, Reply> own_;        // our requests, by the server's number
  KeyedMap<MessageId, Begun> beginning_;  // of these: those that the server may leave pending
  KeyedMap<MessageId, Reply> listening_;  // those that it has left pending
  KeyedSet<MessageId> at_server_;         // the client's requests without a final response, by its numbers
  KeyedSet<MessageId> pended_;            // of these: with an interim response, which has granted the credits
  std::deque<Outgoing> waiting_;          // for ids, in order
  std::size_t queued_bytes_ = 0;          // of the waiting requests
  KeyedMap<MessageId, std::size_t> waiting_ids_;  // how often each id waits
  bool is_burning_ = false;
  bool is_touched_ = false;  // a request was added here, or answered at the near half
  bool is_opaque_ = false;
  bool is_doomed_ = false;
  Client client_ = Client::sends;
};

}  // namespace longhaul::smb::smb2
