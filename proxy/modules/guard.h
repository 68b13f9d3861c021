// SPDX-License-Identifier: Apache-2.0
// The seam for what reads a flow that does not use the link: a module's guard stands between client and server
// as long as the module has to tell the client something, and then steps aside. Without I/O: bytes and ends
// in, bytes out. Who moves the bytes is proxy/flows/guarded_relay.h.
#pragma once
#include <vector>

#include "codecs/slice.h"

namespace longhaul::modules {

class Guard {
 public:
  // What goes on, each way in order.
  struct Out {
    std::vector<Slice> to_client, to_server;
  };

  virtual ~Guard() = default;

  // In any pieces; the slice may be kept.
  virtual void from_client(Slice bytes, Out& out) = 0;
  virtual void from_server(Slice bytes, Out& out) = 0;
  // No more bytes from there. What was held of them goes on.
  virtual void client_ended(Out& out) = 0;
  virtual void server_ended(Out& out) = 0;

  // There is no memory for what it holds: it lets go of it and reads no further.
  virtual void give_up(Out& out) = 0;

  // Nothing is held, and all that comes passes unchanged: bytes need not be shown any more.
  virtual bool is_done() const = 0;
  // Parts of frames that are not complete.
  virtual std::size_t held_bytes() const = 0;
};

}  // namespace longhaul::modules
