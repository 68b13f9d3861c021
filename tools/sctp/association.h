// SPDX-License-Identifier: Apache-2.0
// An SCTP association in user space (usrsctp over raw IP sockets): one that is listened for, dialled, sent on
// and read from. What is said over it, and what is measured, is in stream.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

struct socket;  // of usrsctp

namespace longhaul::sctp {

using Socket = struct ::socket;

struct StackSettings {
  std::size_t buffer_bytes =
      16 << 20;  // of each socket, in each direction: as the tests of SCTP over delay of 2007 had them
  std::size_t mtu = 1500;  // of the path, IP packets: the stack does not look for a larger one
};

// The protocol in this process: its raw sockets and threads. One at a time.
class Stack {
 public:
  explicit Stack(const StackSettings& settings);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  struct Counters {
    std::uint64_t packets_sent = 0;
    std::uint64_t data_chunks_sent = 0;
    std::uint64_t data_chunks_sent_again = 0;
    std::uint64_t timeouts = 0;  // of the retransmission timer, for data
  };
  static Counters counters();
};

struct Endpoint {
  std::string address;  // IPv4 or IPv6, as digits
  std::uint16_t port = 0;
};

// What a message is for, in its payload protocol identifier.
enum class Kind : std::uint32_t { data = 0, control = 1 };

struct Message {
  Kind kind = Kind::data;
  std::size_t bytes = 0;
};

class Association {
 public:
  // One address alone on each side: with all of them SCTP would use any path it finds.
  static Association connect(const std::optional<std::string>& from, const Endpoint& to);

  // False when the other side is gone. Waits for room.
  bool send(Kind kind, std::span<const std::byte> message);
  // A message, or the part of one that `room` takes; nothing when the other side is gone. Waits.
  std::optional<Message> receive(std::span<std::byte> room);
  // Aborts it with data in flight; waiting sends and receives return.
  void abort();

  // The most that fits into one packet of the path, as the stack knows it now.
  std::size_t largest_unfragmented() const;

 private:
  friend class Listener;
  struct Close {
    void operator()(Socket* socket) const;
  };
  explicit Association(Socket* socket) : socket_(socket) {}

  std::unique_ptr<Socket, Close> socket_;
};

class Listener {
 public:
  explicit Listener(const Endpoint& at);
  Association accept();

 private:
  std::unique_ptr<Socket, Association::Close> socket_;
};

}  // namespace longhaul::sctp
