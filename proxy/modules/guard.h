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
    bool reset = false;  // nothing more is relayed: both connections are reset
  };

  virtual ~Guard() = default;

  // Bytes in pieces of any size; the slice may be kept.
  virtual void from_client(Slice bytes, Out& out) = 0;
  virtual void from_server(Slice bytes, Out& out) = 0;
  // Like Module::awaited() and arrived(), for outputs to the client.
  virtual std::uint64_t awaited() const { return 0; }
  virtual void arrived(std::uint64_t /*outputs*/) {}
  // The end of that direction. The guard outputs the bytes that it holds.
  virtual void client_ended(Out& out) = 0;
  virtual void server_ended(Out& out) = 0;

  // Memory is short: the guard outputs the bytes that it holds, and stops reading. Returns false if it must
  // continue, because lost writes must be reported to the client, or may have to be soon.
  virtual bool give_up(Out& out) = 0;

  // Nothing is held and everything passes unchanged: the guard need not receive further bytes.
  virtual bool is_done() const = 0;
  // Bytes of incomplete frames.
  virtual std::size_t held_bytes() const = 0;
  // The flow's reason while the guard reads it; nullopt if there is nothing to report to the client, so that
  // the reason stays.
  virtual std::optional<Reason> reason() const = 0;
};

}  // namespace longhaul::modules
