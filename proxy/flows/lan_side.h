// SPDX-License-Identifier: Apache-2.0
// The socket of a flow towards its client or server: reads and writes without waiting, and notifies its user
// when a wait is over. The pumps interpret and move the bytes.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <memory>
#include <string>

#include "codecs/slice_queue.h"
#include "proxy/flows/flow_table.h"
#include "proxy/flows/trial.h"
#include "proxy/link/stream.h"

namespace longhaul::flows {

// A read fills one record of the stream. Smaller reads are copied, so that they do not pin the whole record.
inline constexpr std::size_t kReadBytes = 64 * 1024;
inline constexpr std::size_t kCopyBelow = 32 * 1024;
// After these limits other flows have their turn: a module that answers locally always has more to write.
inline constexpr int kReadsPerTurn = 16;
inline constexpr std::size_t kWrittenPerTurn = 4 * kReadBytes;  // sealed or framed bytes cost more than reads

// Memory for the next read, and the slice that owns it; reused until a read is large enough to keep the
// slice.
struct ReadSpace {
  Slice slice;
  std::byte* memory = nullptr;
};

class LanSide {
 public:
  class User {
   public:
    virtual ~User() = default;
    virtual void on_lan_readable() = 0;
    virtual void on_lan_writable() = 0;
    virtual void on_lan_failed() = 0;  // the connection was reset while nothing was read
  };
  // The state of one direction. Only a running pump moves bytes.
  enum class Pump : std::uint8_t { held, running, waiting, done };

  // `bytes` counts the bytes that pass the socket; both references outlive this object.
  LanSide(boost::asio::ip::tcp::socket socket, FlowBytes& bytes, User& user);
  ~LanSide();
  LanSide(const LanSide&) = delete;
  LanSide& operator=(const LanSide&) = delete;

  Pump up = Pump::held, down = Pump::held;  // from the socket, to the socket

  void use(boost::asio::ip::tcp::socket socket) { socket_ = std::move(socket); }
  void prepare();

  // ---- On trial: a connection to the server that was made before the client connected (trial.h), until the
  // server has answered.
  void begin_trial(const modules::ConnectAhead& rule, std::shared_ptr<modules::Memory> memory = nullptr) {
    trial_ = std::make_unique<Trial>(rule, std::move(memory));
  }
  void end_trial() { trial_.reset(); }
  // Whether the trial has failed, as detected here or by the caller (make_stale()). Then the connection is
  // gone, both directions are held, and replace() must follow.
  bool is_stale() const { return trial_ && trial_->has_failed(); }
  bool make_stale();  // false if it is not on trial, or another connection would gain nothing
  void drop_stale();
  // Continues with this new connection, as if it had been used from the beginning. Returns false if it
  // failed, too.
  bool replace(boost::asio::ip::tcp::socket socket);

  // ---- Reading.
  enum class Got : std::uint8_t { bytes, nothing, end, failure };
  struct Received {
    Got got = Got::nothing;
    std::size_t size = 0;  // in read_space(), starting at StreamWriter::kRecordRoom
  };
  Received receive(std::size_t room);
  static ReadSpace& read_space();
  void wait_to_read();
  // Reports a reset while nothing is read.
  void watch_for_failure();

  // ---- Writing.
  // Bytes to send before anything else: few, on a new connection, so that the kernel has room for them.
  void set_preface(std::string bytes) { preface_ = std::move(bytes); }
  bool has_preface() const { return !preface_.empty(); }
  bool send_preface();
  enum class Sent : std::uint8_t { some, waits, failure };
  struct Written {
    Sent sent;
    std::size_t size = 0;
  };
  // One write from the front of the queue.
  Written send(const SliceQueue& queue);
  void wait_to_write();
  void end_output();
  // Bytes written that the other end's host has not acknowledged.
  std::size_t unacknowledged();
  // Whether all written bytes were acknowledged by the other end, or no acknowledgement will come.
  bool has_delivered() const;

  // ---- The end.
  void reset();  // sends a RST
  void close();
  void close_gently();  // data already written is still delivered
  boost::asio::ip::tcp::socket take_socket();
  boost::asio::any_io_executor executor() { return socket_.get_executor(); }
  // Points to null once this object and the flow that owns it are destroyed.
  std::shared_ptr<LanSide*> alive() const { return self_; }

 private:
  boost::asio::ip::tcp::socket socket_;
  FlowBytes& bytes_;
  User& user_;
  std::string preface_;
  std::unique_ptr<Trial> trial_;
  bool watching_ = false;
  std::shared_ptr<LanSide*> self_;
};

}  // namespace longhaul::flows
