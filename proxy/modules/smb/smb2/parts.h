// SPDX-License-Identifier: Apache-2.0
// How near.h and far.h pass a message to their parts (reads, writes, metadata, order), one after the other;
// and the functions that the parts may use. A part has its own state and does not use other parts.
//
//   near   request:  aliases, opens, volumes, writes, metadata, reads, else passed on
//          response: aliases, opens, volumes, writes, metadata, reads, else to the client
//   far    request:  opens, order (may hold it), metadata, reads, else sent
//          response: opens, order, metadata, reads, else passed on
#pragma once
#include <functional>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/connection.h"
#include "proxy/modules/smb/smb2/message_ids.h"
#include "proxy/modules/smb/smb2/own_requests.h"

namespace longhaul::smb::smb2 {

enum class Taken : bool { no, yes };

// The interface of the near half for its parts.
class NearSide {
 public:
  virtual ~NearSide() = default;
  virtual Connection& connection() = 0;
  virtual Outputs& out() = 0;
  virtual modules::Counters& counters() = 0;
  virtual const Surroundings& surroundings() const = 0;
  // Answers a single request that passed on_request() and was taken: the frame is sent to the client, the id
  // to the far half (Local; `yes`: another message has reported it, as Used does; `by_server`: this is the
  // server's own response, so no round trip was saved). Includes tracking.
  enum class Told { no, yes, by_server };
  virtual void answer(TimePoint now, MessageId id, Slice frame, Told told = Told::no) = 0;
  // Passes on a request that a part had taken before.
  virtual void pass_on(TimePoint now, const Message& message) = 0;
  // Cached data of this file is void, whichever open it was read through; reported to the twin.
  virtual void drop_file(const FileGroup& file) = 0;
  // A READ of this open was answered here with this many bytes.
  virtual void has_read(const Open& open, std::uint64_t offset, std::uint32_t asked, std::uint32_t got) = 0;

  // Answers a CREATE that was taken with a response that the far half obtained in advance. `questions` have
  // been sent about the file, too: their Answers follow.
  virtual void answer_create(TimePoint now, const Message& request, Slice answer,
                             const std::vector<Slice>& questions) = 0;
  // Answers all requests of a compound that was taken.
  virtual void answer_compound(TimePoint now, const Message& request, Slice answer) = 0;
  // Whether a connection of this session could bypass the pair; nullopt: unknown.
  virtual std::optional<bool> may_be_bypassed(SessionId session) const = 0;
  // Passes a message of the twin to all parts, as if it had just arrived.
  virtual void again(TimePoint now, const TwinMessage& message, const Slice& attached) = 0;
  // Whether WRITEs are promised, or held, that the server has not answered as far as is known here.
  virtual bool has_promised() const = 0;
  // Whether a promise of this open is not settled, or has failed without being reported.
  virtual bool owes(const Open& open) const = 0;
  // WRITEs of the open may be promised from now on, or no longer: see marks.h.
  virtual void mark(const Open& open) = 0;
  virtual void unmark(const OpenKey& open) = 0;
  // Bytes that were read ahead and will not be used.
  virtual void wasted(std::uint64_t bytes) = 0;
};

class NearPart {
 public:
  virtual ~NearPart() = default;
  // For every request, before any part may take it, also in sessions that pass unchanged.
  virtual void before_request(TimePoint, const Message&, const Changes&) {}
  // The effects of every response, including those made here; before on_response().
  virtual void on_outcome(TimePoint, const Connection::Outcome&) {}
  // A request that may be changed (its session is not signed or encrypted). Tracking is done; `changes` are
  // its effects on opens. A part that takes it answers it, now or later, or passes it on after messages.
  virtual Taken on_request(TimePoint now, const Message& message, const Changes& changes) = 0;
  // A frame of the server, after tracking. A part that takes it has sent a replacement to the client.
  virtual Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) = 0;
  virtual Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) = 0;
  virtual void on_surroundings(TimePoint, const Surroundings&) {}
  // The client sends nothing more, or can no longer be parsed. quiet(): nothing is held or owed.
  virtual void lan_ended(TimePoint) {}
  virtual bool quiet() const { return true; }
  virtual void on_timeout(TimePoint) {}
  virtual std::optional<TimePoint> next_timeout() const { return std::nullopt; }
};

enum class Watching : std::uint8_t { now, later, never };

// Whether others cannot change a file unnoticed if the far half requested its oplock: a server breaks oplocks
// only for requests that reach it by SMB.
inline bool is_guarded(const Open& open, const Features& features) {
  return (open.on_behalf ? open.watched : !open.moved) || features.metadata_relaxed;
}

// The interface of the far half for its parts.
class FarSide {
 public:
  virtual ~FarSide() = default;
  virtual Connection& connection() = 0;
  virtual Outputs& out() = 0;
  virtual modules::Counters& counters() = 0;
  virtual const Surroundings& surroundings() const = 0;

  virtual OwnRequests& server() = 0;
  // Sends a client's request that a part had held or swallowed, without passing it to the later parts.
  virtual void send(TimePoint now, const Message& message) = 0;
  // Data of this open that was read from the server before now is void; swallowed requests are sent; reported
  // to the twin.
  virtual void drop(TimePoint now, const Open& open) = 0;

  // Changes by others to this file, or to the names in this directory, must be reported (far_watch.h).
  virtual Watching watch(TimePoint now, Open& open) = 0;
  // The state `later` has ended: Open::watched has the result, and may change again.
  virtual void on_watched(TimePoint now, const Open& open) = 0;
  // Others have changed the file. Data read ahead is dropped.
  virtual void on_noticed(TimePoint now, const Open& open) = 0;

  // A CREATE (as OwnRequests::inject()) or CLOSE (as inject_awaited()) of our own: the connection tracks it
  // like a client's, under an id that no client has. `reply` is called when the connection has processed the
  // response, before the parts receive it as a passed-on response (after_response()). `questions` are sent
  // about the opened file. Returns false as inject() does.
  using Build = OwnRequests::Build;
  using OpenReply =
      std::function<void(TimePoint now, const Message& answer, const Connection::Outcome& outcome)>;
  virtual bool inject_open(TimePoint now, SessionId session, TreeId tree, const Build& build,
                           const std::vector<Slice>& questions, OpenReply reply) = 0;
  virtual bool inject_close(TimePoint now, SessionId session, TreeId tree, const Build& build,
                            OpenReply reply) = 0;
  // Answers a client's request that was taken with the response to one of our own. The server never receives
  // its id.
  virtual void answer(TimePoint now, const Header& request, Slice frame) = 0;
  // Later requests that may depend on this name wait (as in far_order.h) until let_go(same number).
  virtual void hold_behind(std::uint64_t number, const FileName& name) = 0;
  virtual void let_go(TimePoint now, std::uint64_t number) = 0;
  // Whether no connection of the open's session can bypass the pair; the server is queried if that is
  // unknown.
  virtual bool has_only_path(const Open& open) = 0;
  // The result of has_only_path() for this open is known.
  virtual void path_is_known(TimePoint now, const Open& open) = 0;
  // Whether another client opened that file while we held an oplock on it.
  virtual bool contended(const FileName& name) const = 0;
  // Promised requests that have not arrived must not reach the server any more: its connection ends, and the
  // files are recorded.
  virtual void fence() = 0;
  // A message of the server that a part took is passed to the later parts after all, and to the client if
  // they do not take it.
  virtual void on_with(TimePoint now, const Message& message) = 0;
  // Entries of a directory, sent by the server to us or to the client. `listing` is a new number each time
  // that the listing begins again.
  virtual void listed(const OpenKey& directory, MessageId listing, std::uint8_t info_class,
                      const Slice& entries) = 0;
};

// The time after which the near half, without contact, has stopped on its own to use the far half's oplocks
// for responses (near.cc). Returns nullopt if unknown.
inline std::optional<TimePoint> out_of_contact(const Surroundings& surroundings) {
  constexpr modules::Duration kForClocks = std::chrono::seconds(2);
  if (surroundings.contact.since == TimePoint{}) return std::nullopt;
  return surroundings.contact.heard + link::kApart + kForClocks;
}

class FarPart {
 public:
  virtual ~FarPart() = default;
  // For every request, before any part may take it, also in sessions that pass unchanged.
  virtual void before_request(TimePoint, const Message&, const Changes&) {}
  // The effects of every response, including the near half's; before on_response().
  virtual void on_outcome(TimePoint, const Connection::Outcome&) {}
  // A request of the client on its way to the server; taken: held or swallowed. Tracking is done.
  virtual Taken on_request(TimePoint now, const Message& message, const Changes& changes) = 0;
  // A frame of the server that answers the client's requests, with the client's ids; taken: not passed on.
  virtual Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) = 0;
  // Called after a frame of the server was passed on: sends follow-ups, such as first blocks after a CREATE
  // response.
  virtual void after_response(TimePoint, const Connection::Outcome&) {}
  virtual Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) = 0;
  virtual void on_surroundings(TimePoint, const Surroundings&) {}
  virtual void on_ids_freed(TimePoint) {}
  // The client's frames have ended; held requests are sent to the server first. quiet(): nothing is held or
  // owed.
  virtual void stream_ended(TimePoint) {}
  virtual bool quiet() const { return true; }
  // Whether there are promises that the server has not kept: its end is not a clean end.
  virtual bool owes() const { return false; }
  virtual void on_timeout(TimePoint) {}
  virtual std::optional<TimePoint> next_timeout() const { return std::nullopt; }
};

}  // namespace longhaul::smb::smb2
