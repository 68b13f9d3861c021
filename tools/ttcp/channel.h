// SPDX-License-Identifier: Apache-2.0
// The control connection: messages in order, always over TCP, with the other side's death noticed. Leaves
// their meaning to sweep.h and serve.h. On the wire it is tools/measuring's connection; it waits by poll,
// since a receiver waits for it and for packets at once, and an event loop between the two would cost
// packets.
#pragma once
#include "tools/measuring/greeting.h"
#include "tools/measuring/messages.h"
#include "tools/ttcp/messages.h"
#include "tools/ttcp/sockets.h"

namespace longhaul::ttcp {

class Channel {
 public:
  explicit Channel(wan::Descriptor socket);

  // Same program, same version, same token, or Trouble that says which is not.
  void greet(measuring::Side side, const std::string& token, TimePoint deadline, const Stop& stop);

  int descriptor() const { return socket_.get(); }
  Address local() const { return Address::local_of(socket_.get()); }
  Address peer() const { return Address::peer_of(socket_.get()); }

  void send(const boost::json::object& message, const Stop& stop);  // throws PeerGone
  // What has come already; never waits. Throws PeerGone, also with the sentence of the other side's trouble.
  std::optional<boost::json::object> poll();
  // Waits; nothing: the deadline passed.
  std::optional<boost::json::object> receive(TimePoint deadline, const Stop& stop);
  // The last thing that it hears from us; it may be gone already.
  void tell_trouble(std::string_view sentence, const Stop& stop);

 private:
  wan::Descriptor socket_;
  measuring::MessageReader reader_;
};

}  // namespace longhaul::ttcp
