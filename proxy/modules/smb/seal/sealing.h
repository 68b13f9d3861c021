// SPDX-License-Identifier: Apache-2.0
// A connection whose signatures and encryption end at the two halves: between them and on the link its
// messages are plain, and therefore reduced; on each leg they are protected as client and server agreed. The
// far half finds the keys, and gives the near half those of its leg; nothing else of them leaves the far
// site.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/seal/handshake.h"
#include "proxy/modules/smb/seal/leg.h"
#include "proxy/modules/smb/seal/unopened.h"

namespace longhaul::smb::seal {

// A session passes as it is, for this reason.
Unsealed unsealed_for(modules::Reason reason);

// Of one half.
class Sealing {
 public:
  explicit Sealing(Leg::To to) : leg_(to) {}
  virtual ~Sealing() = default;

  // A frame as it arrived, for the half; none: the connection has been reset, for why_reset().
  virtual std::optional<Frame> from_lan(TimePoint now, const Frame& frame, Outputs& out);
  virtual Frame from_stream(const Frame& frame) { return frame; }
  // Whole frames for the LAN, in any pieces; none: the connection must be reset, for why_reset().
  std::optional<std::vector<Slice>> to_lan(Slice bytes);

  // A message for this layer; the half does not see it.
  virtual bool takes(const TwinMessage&, Outputs&) { return false; }

  // Messages must be opened and sealed here: the module may not step aside.
  virtual bool is_needed() const { return !leg_.empty(); }
  modules::Reason why_reset() const { return why_reset_; }
  // What the last session that began is protected with and how its key was found, or why it was not.
  std::string_view detail() const { return detail_; }
  std::size_t state_bytes() const { return leg_.state_bytes(); }

 protected:
  void reset(modules::Reason reason, Outputs& out);
  Leg leg_;
  std::string detail_;

 private:
  modules::Reason why_reset_ = reasons::optimised;
};

class NearSealing final : public Sealing {
 public:
  NearSealing() : Sealing(Leg::To::client) {}
  bool takes(const TwinMessage& message, Outputs& out) override;
};

class FarSealing final : public Sealing {
 public:
  // `half`: of the connection, which outlives this. `unopened`: of all connections of this site.
  FarSealing(std::shared_ptr<const ServerKeys> keys, Half& half, std::shared_ptr<Unopened> unopened,
             const modules::Ends& ends);
  std::optional<Frame> from_lan(TimePoint now, const Frame& frame, Outputs& out) override;
  Frame from_stream(const Frame& frame) override { return handshake_.from_client(frame); }
  bool is_needed() const override { return handshake_.is_changed() || Sealing::is_needed(); }

 private:
  std::optional<Frame> cannot_open(TimePoint now, const Missing& missing, const Frame& frame, Outputs& out);

  Handshake handshake_;
  Half& half_;
  std::shared_ptr<Unopened> unopened_;
  modules::Ends ends_;
};

}  // namespace longhaul::smb::seal
