// SPDX-License-Identifier: Apache-2.0
// The far half's part for opens made ahead: opens the files that a client will probably open next
// (opening_row.h), with the options of its last open, under a batch oplock, and offers them to the near half
// (near_opens.h), together with data of the files.
//
// Each open is in one of these states (opens_ahead.h; the last one: unused_opens.h). Only an offered open may
// be given to the client:
//
//   opening --> offered --> given to the client (Took): from then on it is like any other; but see below
//      |           |`--> being taken back (Revoke sent): GaveUp or Took is in transit
//      `-----------+--> closing: the client's requests that depend on the name wait for the response
//
// A client that opens each file with a lease of its own gets no such opens. If it looks at each file before
// (look.h), the next files are opened for these looks: nothing is read, and Took says that a look has been
// answered, so the file is closed.
//
// - A break of an offered open is not acknowledged before the near half has reported whether the client has
//   it. If not, the CLOSE is the acknowledgement; otherwise the break is handled as usual.
// - If a CREATE arrives from the client, the near half has passed it on and uses no open of that name until
//   it is answered. So the CREATE can be answered with an open in progress, or an offered one, if it requests
//   exactly that; otherwise our open of that name is closed first, without waiting for an acknowledgement.
// - An open that no client has requested within a few seconds is closed, and fewer are opened afterwards.
#pragma once
#include "proxy/modules/ahead/read_ahead.h"
#include "proxy/modules/smb/smb2/opening_row.h"
#include "proxy/modules/smb/smb2/opens_ahead.h"
#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/row_creates.h"
#include "proxy/modules/smb/smb2/unused_opens.h"

namespace longhaul::smb::smb2 {

class FarOpens final : public FarPart {
 public:
  explicit FarOpens(FarSide& side) : side_(side) {}

  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  // Takes breaks of opens that the client has not received.
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  // Took and GaveUp; also observes the client's reads, and the queries that the near half expects.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_ids_freed(TimePoint now) override;
  void stream_ended(TimePoint now) override;
  // Earlier responses of the server about the open are void.
  void on_noticed(const Open& open);
  bool quiet() const override { return opens_.waiting() == 0; }
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;

  // Approximate memory of the names of listed files.
  std::size_t state_bytes() const { return row_.state_bytes() + looks_.state_bytes(); }

  // Directory entries that the server sent to the client or to us.
  void listed(const OpenKey& directory, MessageId listing, std::uint8_t info_class, const Slice& entries);

  // Opens of the connection, of all kinds. With more, one of ours might be one too many to be tracked when
  // its response arrives, behind those to the client's CREATEs: its oplock could not be returned.
  static constexpr std::size_t kMostOpens = Connection::kMostOpens / 2;

 private:
  // Opens for looks at a time. A client looks at one file after the other, once in each round trip. Far fewer
  // than are watched at a time (far_times.h), because those of the client are, too.
  static constexpr std::size_t kMostLooks = 16;
  static constexpr unsigned kMostMissed = 8;

  using Number = OpensAhead::Number;
  using Ahead = OpensAhead::Ahead;
  using State = OpensAhead::State;
  void looked(const Message& message);
  void go_on(TimePoint now);
  void go_on(TimePoint now, OpeningRow& row);
  bool open(TimePoint now, const OpeningRow& row, const NextFiles::File& file);
  void answered(TimePoint now, Number number, const Message& answer, const Connection::Outcome& outcome);
  void offer(Number number, const Ahead& ahead);
  void taken(TimePoint now, Number number);
  void give_to(TimePoint now, Number number, const Message& request);
  void meet(TimePoint now, const Message& message);
  void want_no_more(TimePoint now, Number number, Ahead& ahead);
  void take_back(Number number);
  void close(TimePoint now, Number number);
  bool known(const FileName& name);
  ReadAheadLimits limits_of_line() const;
  modules::Duration life_of(const PlainOpen& asked) const;
  std::size_t most_looks() const;
  OpeningRow& row_of(const PlainOpen& asked) { return asked.is_look() ? looks_ : row_; }
  void read(const Open* open);
  void hold_behind(Number number, Ahead& ahead);

  FarSide& side_;
  OpensAhead opens_;
  UnusedOpens unused_{side_};
  OpeningRow row_, looks_{kMostLooks};
  bool has_looked_ = false;    // names are kept for looks_ only after the client's first look at any file
  unsigned missed_looks_ = 0;  // consecutive looks that the server answered although the file was open ahead
  RowCreates creates_;
  bool starved_ = false;
  bool ended_ = false;
};

}  // namespace longhaul::smb::smb2
