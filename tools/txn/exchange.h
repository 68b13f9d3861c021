// SPDX-License-Identifier: Apache-2.0
// One side of the transactions over UDP: a message of the file's size one way, an answer of one byte the
// other way, both in acknowledged windows. Bytes and time in, bytes and a deadline out; the sockets are
// udp_script.h's.
#pragma once
#include <deque>
#include <optional>

#include "tools/txn/datagram.h"
#include "tools/txn/windows.h"
#include "tools/txn/workload.h"

namespace longhaul::txn {

inline constexpr std::uint32_t kAnswerBytes = 1;

Cut request_cut(const Workload& workload, Family family);

// What both sides share: the message that is sent, the one that is received, and answers on their way.
class Exchange {
 public:
  Exchange(const Workload& workload, Family family, Direction sends);

  // Datagrams with another key are a stranger's. Throws Trouble where a byte is wrong.
  enum class Of { stranger, earlier, current };  // transaction
  Of receive(TimePoint now, Bytes datagram);
  bool poll_transmit(TimePoint now, Buffer& out);  // false: nothing to send now
  std::optional<TimePoint> next_timeout() const;
  void on_timeout(TimePoint now);
  Counts counts() const;

 protected:
  struct Place {
    std::uint32_t connection = 0;
    std::uint32_t message = 0;
    auto operator<=>(const Place&) const = default;
  };
  ~Exchange() = default;

  virtual Of on_data(TimePoint now, const Datagram& datagram) = 0;
  void begin_sending(Place place, Cut cut);
  void finish_sending();
  void begin_receiving(Place place, Cut cut);
  void take(const Datagram& datagram);  // a piece of the message that is received
  Of acknowledge_again(const Datagram& datagram);
  bool all_sent() const { return !sender_ || sender_->done(); }
  bool all_received() const { return receiver_ && receiver_->done(); }
  // Of one transaction; EFT-SHORT counts connections, the others messages.
  ByteSource bytes_of(Place place, Direction direction) const;
  Direction receives() const {
    return sends_ == Direction::request ? Direction::response : Direction::request;
  }

  const Workload workload_;
  const Family family_;
  Place receiving_;

 private:
  void answer(const Datagram& datagram, const WindowReceiver::Answer& answer);

  const Direction sends_;
  RetransmitTimer timer_;
  std::optional<WindowSender> sender_;
  std::optional<WindowReceiver> receiver_;
  Place sending_;
  std::deque<Datagram> answers_;
  Counts earlier_;  // of messages that are done
  Buffer payload_;
};

class Requester final : public Exchange {
 public:
  Requester(const Workload& workload, Family family) : Exchange(workload, family, Direction::request) {}
  // Begins the transaction with this number, which is larger than that before.
  void begin(std::uint32_t transaction);
  bool done() const {
    return all_received();
  }  // the answer has come; what poll_transmit gives is still to be sent

 private:
  Of on_data(TimePoint now, const Datagram& datagram) override;
};

class Responder final : public Exchange {
 public:
  Responder(const Workload& workload, Family family) : Exchange(workload, family, Direction::response) {}
  std::uint64_t requests() const { return requests_; }  // that have arrived whole

 private:
  Of on_data(TimePoint now, const Datagram& datagram) override;
  bool begun_ = false;
  std::uint64_t requests_ = 0;
};

}  // namespace longhaul::txn
