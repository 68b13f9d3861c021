// SPDX-License-Identifier: Apache-2.0
// The interface of a module's guard, which reads a flow outside the link between client and server while the
// module must report something to the client, and then steps aside. Without I/O: bytes and ends in, bytes
// out; proxy/flows/guarded_relay.h moves the bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "codecs/slice.h"
#include "proxy/modules/reason.h"

namespace longhaul::modules {

class Guard {
 public:
  // Output, in order for each direction.
  struct Out {
    std::vector<Slice> to_client, to_server;
    bool reset = false;  // nothing more passes: both connections are reset
  };

  virtual ~Guard() = default;

  // In any pieces; the slice may be kept.
  virtual void from_client(Slice bytes, Out& out) = 0;
  virtual void from_server(Slice bytes, Out& out) = 0;
  // As Module::awaited() and arrived(), of outputs to the client.
  virtual std::uint64_t awaited() const { return 0; }
  virtual void arrived(std::uint64_t /*outputs*/) {}
  // The end of that direction. Held bytes are output.
  virtual void client_ended(Out& out) = 0;
  virtual void server_ended(Out& out) = 0;

  // Memory is short: it outputs what it holds and stops reading. False: it must not, because the client must be told of
  // lost writes, or may have to be soon.
  virtual bool give_up(Out& out) = 0;

  // Nothing is held and everything passes unchanged: the guard need not see further bytes.
  virtual bool is_done() const = 0;
  // Incomplete frames.
  virtual std::size_t held_bytes() const = 0;
  // The flow's, while the guard reads it; none: the client has nothing to be told, and it stays as it was.
  virtual std::optional<Reason> reason() const = 0;
};

}  // namespace longhaul::modules
