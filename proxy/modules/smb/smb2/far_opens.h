// SPDX-License-Identifier: Apache-2.0
// The far half's part for opens made ahead: opens the files that a client will probably open next
// (opening_row.h), with the options of its last open, under a batch oplock, and offers them to the near half
// (near_opens.h), together with data of the files.
//
// Each open is in one of these states; only an offered one may be given to the client:
//
//   opening --> offered --> given to the client (Took): from then on it is like any other
//      |           |`--> being taken back (Revoke sent): GaveUp or Took is under way
//      `-----------+--> closing: the client's requests that depend on the name wait for the answer
//
// - A break of an offered open is not answered before the near half has reported whether the client has it.
//   If it has not, the CLOSE is the answer; if it has, the break is handled as usual.
// - If a CREATE arrives from the client, the near half has passed it on and gives out no open of that name
//   until it is answered. So the CREATE can be answered with an open in progress, or an offered one, if it
//   requests exactly that; otherwise our open of that name is closed first, without waiting for an
//   acknowledgement.
// - An open that no client has requested within a few seconds is closed, and fewer are opened afterwards.
#pragma once
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "proxy/modules/smb/smb2/opening_row.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarOpens final : public FarPart {
 public:
  explicit FarOpens(FarSide& side) : side_(side) {}

  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  // Takes breaks of opens that the client does not have.
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  // Took and GaveUp; also sees the client's reads, and the queries that the near half expects.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_ids_freed(TimePoint now) override;
  void stream_ended(TimePoint now) override;
  // Earlier answers of the server about it are void.
  void on_noticed(const Open& open);
  bool quiet() const override { return waiting_ == 0; }
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;

  // Directory entries that the server sent to the client or to us.
  void listed(const OpenKey& directory, std::uint64_t listing, std::uint8_t info_class, const Slice& entries);

 private:
  using Number = std::uint64_t;
  enum class State : std::uint8_t { opening, offered, taken_back, closing };
  struct Ahead {
    State state = State::opening;
    SessionId session = 0;
    TreeId tree = 0;
    PlainOpen asked;
    FileName name;
    std::uint64_t bytes = 0;         // that are fetched with it, approximately
    std::vector<Slice> questions;    // that are asked about it
    bool unwanted = false;           // while opening: to be closed
    std::optional<Message> waiting;  // while opening: the client's own CREATE
    FileId file;                     // from here on: since it is open
    OpenKey key;
    Slice response;
    TimePoint since{};
    std::optional<Message> broken;  // the server's break
    bool close_sent = false;
  };
  using Opens = std::map<Number, Ahead>;
  void go_on(TimePoint now);
  bool open(TimePoint now, const NextFiles::File& file);
  void answered(TimePoint now, Number number, const Message& answer, const Connection::Outcome& outcome);
  void offer(TimePoint now, Number number, Ahead& ahead);
  void give_to(TimePoint now, Opens::iterator ahead, const Message& request);
  void meet(TimePoint now, const Message& message);
  void want_no_more(TimePoint now, Number number, Ahead& ahead);
  void take_back(Number number, Ahead& ahead);
  void close(TimePoint now, Number number, Ahead& ahead);
  void send_close(TimePoint now, Number number, Ahead& ahead);
  void let_go_of_unsent(TimePoint now);
  bool known(const FileName& name);
  std::uint64_t bytes_of(std::uint64_t size) const;
  std::uint64_t most_bytes() const;

  static constexpr std::chrono::seconds kLife{5};
  static constexpr std::size_t kMostOpening = Connection::kMostPending, kMostAsked = 1024;

  FarSide& side_;
  Opens opens_;
  std::unordered_map<FileId, Number, FileIdHash> by_file_;
  Number next_number_ = 1;
  std::size_t waiting_ = 0;  // CREATEs of the client

  OpeningRow row_;
  KeyedMap<MessageId, OpeningRow::Opened> asked_;
  KeyedMap<MessageId, std::vector<Slice>> expected_;
  bool starved_ = false;
  bool ended_ = false;
};

}  // namespace longhaul::smb::smb2
