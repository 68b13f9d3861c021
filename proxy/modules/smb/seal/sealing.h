// SPDX-License-Identifier: Apache-2.0
// A connection whose signatures and encryption are handled by the two halves: between them, and on the link,
// its messages are plain and can therefore be reduced; on each leg they are protected as client and server
// agreed. The far half finds the keys, and sends the near half those of its leg; no other key leaves the far
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

// A session passes unchanged, for this reason.
Unsealed unsealed_for(modules::Reason reason);
// "key from the keytab (aes256-cts-hmac-sha1-96, version 3)"
std::string text_of(const Found& found);
// The twin's texts are displayed on terminals.
std::string printable(std::string_view text);

// One half's sealing, for any dialect. smb1_sealing.h has the part for SMB1.
class Sealing {
 public:
  virtual ~Sealing() = default;

  // A received frame, converted for the half. Returns nullopt if the connection has been reset, for reason().
  virtual std::optional<Frame> from_lan(TimePoint now, const Frame& frame, Outputs& out) = 0;
  virtual Frame from_stream(const Frame& frame) { return frame; }
  // Whole frames for the LAN, in any pieces. Returns nullopt if the connection must be reset, for reason().
  virtual std::optional<std::vector<Slice>> to_lan(Slice bytes) = 0;

  // Takes messages for this layer, which the half does not receive.
  virtual bool takes(const TwinMessage&, Outputs&) { return false; }

  // Whether messages must be opened and sealed here, so that the module may not step aside.
  virtual bool is_needed() const = 0;
  virtual std::size_t state_bytes() const = 0;
  // Why the connection was reset, or why the last login was refused; `optimised`: neither.
  modules::Reason reason() const { return why_reset_ != reasons::optimised ? why_reset_ : refused_; }
  // How the session that began last is protected and how its key was found, or why it was not.
  std::string_view detail() const { return detail_; }

 protected:
  void reset(modules::Reason reason, Outputs& out);
  std::string detail_;
  modules::Reason refused_ = reasons::optimised;  // until a login is accepted
  modules::Reason why_reset_ = reasons::optimised;
};

// A Sealing with the leg of a dialect (leg.h, smb1_leg.h).
template <class Leg>
class LegSealing : public Sealing {
 public:
  explicit LegSealing(Leg leg) : leg_(std::move(leg)) {}

  std::optional<Frame> from_lan(TimePoint, const Frame& frame, Outputs& out) override {
    if (why_reset_ != reasons::optimised) return std::nullopt;
    auto opened = leg_.open(frame);
    if (opened) return std::move(*opened);
    const bool weaker = opened.error() == make_error_code(Error::unprotected);
    reset(weaker ? reasons::smb_unprotected : reasons::smb_forged, out);
    return std::nullopt;
  }
  std::optional<std::vector<Slice>> to_lan(Slice bytes) override {
    std::vector<Slice> sealed;
    if (why_reset_ == reasons::optimised && leg_.seal(std::move(bytes), sealed)) return sealed;
    if (why_reset_ == reasons::optimised) why_reset_ = reasons::smb_unprotected;
    return std::nullopt;
  }
  bool is_needed() const override { return !leg_.empty(); }
  std::size_t state_bytes() const override { return leg_.state_bytes(); }

 protected:
  Leg leg_;
};

class NearSealing final : public LegSealing<Leg> {
 public:
  // `used`: ids used by the client before.
  explicit NearSealing(UsedIds used) : LegSealing(Leg(Leg::To::client, std::move(used))) {}
  Frame from_stream(const Frame& frame) override;
  bool takes(const TwinMessage& message, Outputs& out) override;

 private:
  void begin(const SealKeys& given, Outputs& out);
};

class FarSealing final : public LegSealing<Leg> {
 public:
  // `half`: of the connection; outlives this object. `unopened`: shared by all connections of this site.
  FarSealing(std::shared_ptr<const ServerKeys> keys, Half& half, std::shared_ptr<Unopened> unopened,
             const modules::Ends& ends);
  std::optional<Frame> from_lan(TimePoint now, const Frame& frame, Outputs& out) override;
  Frame from_stream(const Frame& frame) override { return handshake_.from_client(frame); }
  bool is_needed() const override { return handshake_.is_changed() || LegSealing::is_needed(); }

 private:
  void refused(const Missing& why, Outputs& out);
  std::optional<Frame> cannot_open(TimePoint now, const Missing& missing, const Frame& frame, Outputs& out);

  Handshake handshake_;
  Half& half_;
  std::shared_ptr<Unopened> unopened_;
  modules::Ends ends_;
};

}  // namespace longhaul::smb::seal
