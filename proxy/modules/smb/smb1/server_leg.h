// SPDX-License-Identifier: Apache-2.0
// The far half's connection to the server: the order of requests, their ids, and how many are pending at
// once. The client's requests keep their ids; requests that the near half has answered, and those of this
// half, get a PID and MIDs of our own. Raw transfers have the connection to themselves.
#pragma once
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/raw_transfer.h"
#include "proxy/modules/smb/smb1/scope.h"

namespace longhaul::smb::smb1 {

class ServerLeg {
 public:
  explicit ServerLeg(Outputs& out) : out_(out) {}

  // [MS-CIFS] 2.2.4.52.2, MaxMpxCount: limit of unanswered requests, the client's and ours together.
  void set_max_mpx(std::uint16_t max) { max_mpx_ = max; }

  // A request of the client; it is sent after all held ones.
  void send(Slice frame, MessageNumber number, bool has_answer, const Scope& scope);
  // READ_RAW or WRITE_RAW. Its data has no header by which it could be recognised: it is sent when none of
  // our requests is pending, and nothing else is sent until it is completed.
  void send_raw(Slice frame, MessageNumber number);
  // The data of a WRITE_RAW.
  void send_raw_data(Slice frame);
  // A frame of the server during the transfer. Returns true if it belongs to the transfer, and must be passed
  // on unchanged.
  bool on_raw(const Frame& frame, Connection& connection);
  const RawTransfer& raw() const { return raw_; }
  // A request that the near half has answered. `on_answer` receives the server's response and returns whether
  // more parts follow.
  enum class Parts : std::uint8_t { last, more };
  using OnAnswer = std::function<Parts(const Message& answer)>;
  struct Promise {
    OpenKey open;
    Interval range;  // empty: not a WRITE
  };
  void send_promised(Slice frame, const Scope& scope, const Promise& promise, OnAnswer on_answer);
  // A request of the client under ids of ours: only `on_answer` receives its response.
  void send_renumbered(Slice frame, const Scope& scope, OnAnswer on_answer);
  // A client's request has received its last response.
  void answered(MessageNumber number);

  // A request of our own, if there is room; during a raw transfer it waits. `names`: the open that it refers
  // to.
  bool has_room() const;
  // The same for one in the place of a client's request that is not sent.
  bool has_room_for_client() const;
  void inject(std::uint16_t uid, std::uint16_t tid, std::uint16_t flags2, std::optional<OpenKey> names,
              const std::function<Slice(const Ids&)>& build, OnAnswer on_answer);
  // The same for a request that the server may answer at any later time: only raw transfers wait for it.
  void listen(std::uint16_t uid, std::uint16_t tid, std::uint16_t flags2,
              const std::function<Slice(const Ids&)>& build, OnAnswer on_answer);
  // A request without a response needs no room.
  void inject_unanswered(std::uint16_t uid, std::uint16_t tid, std::uint16_t flags2,
                         const std::function<Slice(const Ids&)>& build);

  // A response of the server. Returns true if it belongs to a request of ours, whose callback was called.
  bool on_answer(const Message& answer);

  // Whether a promise on this open is not answered, or one of its requests waits to be sent.
  bool is_busy(const OpenKey& open) const;
  bool is_idle() const { return queue_.empty() && own_.empty(); }
  bool listens() const { return !listening_.empty(); }
  bool owes() const { return promises_ != 0; }  // a promise is not answered
  std::vector<OpenKey> owed() const;            // those opens, some more than once
  std::size_t queued_bytes() const { return queued_bytes_; }
  void pump();
  // Sends all held requests at once.
  void flush();

 private:
  struct Waiting {
    Slice frame;
    MessageNumber number{};
    bool has_answer = true;
    bool renumbered = false;
    bool raw = false;
    Scope scope;
    std::optional<OpenKey> names;
    std::optional<Promise> promise;
    OnAnswer on_answer;
  };
  struct Own {
    OnAnswer on_answer;
    std::optional<OpenKey> names;
    std::optional<Promise> promise;
  };
  // Approximate memory of a waiting request in addition to its frame.
  static constexpr std::size_t kWaitingBytes = 256;
  static constexpr std::size_t kMostOutstanding = 1 << 15;

  // Counts promises, and requests that make opens busy.
  enum class Counts : bool { begin, end };
  void count(const std::optional<Promise>& promise, Counts what);
  void count(const Waiting& waiting, Counts what);
  void count(const OpenKey& open, Counts what);
  void queue(Waiting waiting);
  void send_first();
  void go(Waiting next);
  bool may_go(const Waiting& waiting) const;
  bool has_place() const;
  std::size_t outstanding() const { return clients_.size() + own_.size() + listening_.size(); }
  std::uint16_t take_mid();

  Outputs& out_;
  std::size_t max_mpx_ = 1;
  std::deque<Waiting> queue_;
  std::size_t queued_bytes_ = 0;
  RawTransfer raw_;
  KeyedSet<MessageNumber> clients_;  // sent, and not answered
  std::unordered_map<std::uint16_t, Own> own_;
  std::unordered_map<std::uint16_t, OnAnswer> listening_;
  std::unordered_map<OpenKey, std::size_t, OpenKeyHash> busy_;
  std::size_t promises_ = 0;
  std::uint16_t last_mid_ = 0;
};

// Process id of our requests. Those of real clients are smaller.
inline constexpr std::uint32_t kOwnPid = 0x4C48'4C48;

}  // namespace longhaul::smb::smb1
