// SPDX-License-Identifier: Apache-2.0
// How near.h and far.h ask their parts (reads, writes, metadata, order), one after the other, what is to
// become of a message; and what the parts may use. A part keeps its own state and knows no other part.
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

namespace longhaul::smb::smb2 {

enum class Taken : bool { no, yes };

// The near half, as its parts see it.
class NearSide {
 public:
  virtual ~NearSide() = default;
  virtual Connection& connection() = 0;
  virtual Outputs& out() = 0;
  virtual modules::Counters& counters() = 0;
  virtual const modules::Surroundings& surroundings() const = 0;
  // Answers a single request that passed on_request() and was taken: the frame goes to the client, the id to
  // the far half (Local; `yes`: another message has told it, as Used does; `by_server`: this is the server's
  // own answer, so nothing was spared). Book-keeping included.
  enum class Told { no, yes, by_server };
  virtual void answer(TimePoint now, MessageId id, Slice frame, Told told = Told::no) = 0;
  // Sends a request on that a part had taken before.
  virtual void pass_on(TimePoint now, const Message& message) = 0;
  // What is known of this file's data is void, whichever open it was read through; told to the twin.
  virtual void drop_file(const FileGroup& file) = 0;
  // A READ of this open was answered here with so many of the bytes it asked for.
  virtual void has_read(const Open& open, std::uint64_t offset, std::uint32_t asked, std::uint32_t got) = 0;

  // Gives a CREATE that was taken an answer of the server's that the far half had before it was asked.
  // `questions` have been asked about the file, too: their Answers come.
  virtual void answer_create(TimePoint now, const Message& request, Slice answer,
                             const std::vector<Slice>& questions) = 0;
  // Whether a connection of this session could go past the pair; none: not known yet.
  virtual std::optional<bool> may_be_bypassed(SessionId session) const = 0;
  // Shows all parts a message of the twin's, as if it came only now.
  virtual void again(TimePoint now, const TwinMessage& message, const Slice& attached) = 0;
  // WRITEs are promised, or held, that the server has not answered as far as is known here.
  virtual bool has_promised() const = 0;
  // Something was promised through this open that is not done, or has failed and that was not told.
  virtual bool owes(const Open& open) const = 0;
  // Bytes that came ahead and that nobody will get.
  virtual void wasted(std::uint64_t bytes) = 0;
};

class NearPart {
 public:
  virtual ~NearPart() = default;
  // Every request, before anybody is asked to take it, and in sessions that must not be touched too.
  virtual void before_request(TimePoint, const Message&, const Changes&) {}
  // What every answer changed, those made here too; before on_response().
  virtual void on_outcome(TimePoint, const Connection::Outcome&) {}
  // A request that may be touched (its session is not signed or encrypted). Book-keeping is done; `changes`
  // says what it does to opens. A part that takes it answers it, now or later, or passes it on with what it
  // tells before it.
  virtual Taken on_request(TimePoint now, const Message& message, const Changes& changes) = 0;
  // A frame of the server, book-keeping done. Who takes it has put something in its place to the client.
  virtual Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) = 0;
  virtual Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) = 0;
  virtual void on_surroundings(TimePoint, const modules::Surroundings&) {}
  // The client sends nothing more, or is not understood any more. True: nothing is held or owed.
  virtual void lan_ended(TimePoint) {}
  virtual bool quiet() const { return true; }
  virtual void on_timeout(TimePoint) {}
  virtual std::optional<TimePoint> next_timeout() const { return std::nullopt; }
};

enum class Watching : std::uint8_t { now, later, never };

// Whether others may change a file unseen although its oplock was asked by us. A server breaks oplocks for
// what reaches it as SMB alone.
inline bool is_guarded(const Open& open, const config::Features& features) {
  return !open.on_behalf || open.watched || features.smb_metadata_relaxed;
}

// The far half, as its parts see it.
class FarSide {
 public:
  virtual ~FarSide() = default;
  virtual Connection& connection() = 0;
  virtual Outputs& out() = 0;
  virtual modules::Counters& counters() = 0;
  virtual const modules::Surroundings& surroundings() const = 0;

  // A request of our own on an open's session and tree. `build` makes its frame from the head it gets. The
  // final answer comes to `reply` (interim ones do not); if the connection ends before, none comes. False: no
  // ids are free, or the connection must not be touched; try again when on_ids_freed() is called.
  using Build = std::function<Slice(const RequestHead& head)>;
  using Reply = std::function<void(TimePoint now, const Frame& frame, const Element& answer)>;
  virtual bool inject(TimePoint now, SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
                      Reply reply) = 0;
  virtual bool can_inject(std::uint16_t charge) const = 0;
  // As inject(), of what we owe the server for something of our own: also where nothing else is added any
  // more, as long as ids may be (Connection::ids_are_fixed) and the session has not expired.
  virtual bool inject_owed(TimePoint now, SessionId session, TreeId tree, const Build& build) = 0;
  // As inject(), of what the server may answer after any time. `begun`: it has said that it will.
  using Begun = std::function<void(TimePoint now)>;
  virtual bool listen(TimePoint now, SessionId session, TreeId tree, const Build& build, Begun begun,
                      Reply reply) = 0;
  // Sends a client's request on that a part had held or swallowed, past the parts behind it.
  virtual void send(TimePoint now, const Message& message) = 0;
  // The server's data of this open that were read before now are void; what was swallowed is sent; told to
  // the twin.
  virtual void drop(TimePoint now, const Open& open) = 0;

  // Changes that others make in this file, or to the names in this directory, are to be told (far_watch.h).
  virtual Watching watch(TimePoint now, Open& open) = 0;
  // `later` is over: Open::watched tells how, and may change again.
  virtual void on_watched(TimePoint now, const Open& open) = 0;
  // Others have changed it. Data read ahead are dropped.
  virtual void on_noticed(TimePoint now, const Open& open) = 0;

  // A CREATE or CLOSE of our own: the connection keeps account of it as of a client's, under an id that no
  // client has. `reply` comes when it knows the answer, before the parts see it as an answer that was passed
  // on (after_response()). `questions` are asked about what it opens. False: as inject().
  using OpenReply =
      std::function<void(TimePoint now, const Message& answer, const Connection::Outcome& outcome)>;
  virtual bool inject_open(TimePoint now, SessionId session, TreeId tree, const Build& build,
                           const std::vector<Slice>& questions, OpenReply reply) = 0;
  // Gives a client's request that was taken the answer to one of our own. The server never sees its id.
  virtual void answer(TimePoint now, const Message& request, Slice frame) = 0;
  // What comes from here on and may build on this name waits (as in far_order.h) until let_go(same number).
  virtual void hold_behind(std::uint64_t number, const FileName& name) = 0;
  virtual void let_go(TimePoint now, std::uint64_t number) = 0;
  // No connection of the open's session can go past the pair; asked of the server where it is not known yet.
  virtual bool has_only_path(TimePoint now, const Open& open) = 0;
  // What has_only_path() asked about this open is answered.
  virtual void path_is_known(TimePoint now, const Open& open) = 0;
  // Others wanted that file while we held an oplock on it.
  virtual bool contended(const FileName& name) const = 0;
  // What was promised and has not come must not reach the server any more: its connection ends, and the files
  // are remembered.
  virtual void fence() = 0;
  // A message of the server's that a part took, for those behind it after all; to the client if they do not
  // take it.
  virtual void on_with(TimePoint now, const Message& message) = 0;
  // Entries of a directory, as the server told them to us or to the client. `listing` is another number each
  // time that it begins again.
  virtual void listed(const OpenKey& directory, std::uint64_t listing, std::uint8_t info_class,
                      const Slice& entries) = 0;
};

// From when on the near half answers nothing by what the far half holds for it, as neither has heard of the
// other: it has stopped by itself (near.cc). None: how long that is, is not known.
inline std::optional<TimePoint> out_of_contact(const modules::Surroundings& surroundings) {
  constexpr modules::Duration kForClocks = std::chrono::seconds(2);
  if (surroundings.contact.since == TimePoint{}) return std::nullopt;
  return surroundings.contact.heard + link::kApart + kForClocks;
}

class FarPart {
 public:
  virtual ~FarPart() = default;
  // Every request, before anybody is asked to take it, and in sessions that must not be touched too.
  virtual void before_request(TimePoint, const Message&, const Changes&) {}
  // What every answer changed, those that the near half gave too; before on_response().
  virtual void on_outcome(TimePoint, const Connection::Outcome&) {}
  // A request of the client on its way to the server; taken: held or swallowed. Book-keeping is done.
  virtual Taken on_request(TimePoint now, const Message& message, const Changes& changes) = 0;
  // A frame of the server that answers the client's requests, in the client's numbers; taken: not passed on.
  virtual Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) = 0;
  // After a frame of the server was passed on: what follows it, such as first blocks behind a CREATE answer.
  virtual void after_response(TimePoint, const Connection::Outcome&) {}
  virtual Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) = 0;
  virtual void on_surroundings(TimePoint, const modules::Surroundings&) {}
  virtual void on_ids_freed(TimePoint) {}
  // The client's frames have ended; what is held goes to the server first. quiet(): nothing is held or owed.
  virtual void stream_ended(TimePoint) {}
  virtual bool quiet() const { return true; }
  // Promises that the server has not kept: its end is no clean end.
  virtual bool owes() const { return false; }
  virtual void on_timeout(TimePoint) {}
  virtual std::optional<TimePoint> next_timeout() const { return std::nullopt; }
};

}  // namespace longhaul::smb::smb2
