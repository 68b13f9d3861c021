// SPDX-License-Identifier: Apache-2.0
// A connection of SMB1 whose signatures are handled by the two halves (sealing.h). The first user who logs in
// determines the key of the whole connection ([MS-CIFS] 3.3.5.43), and the server's response, which is the
// first signed message, shows whether the key is right. Both legs use that key, with separate numbers.
#pragma once
#include "proxy/modules/smb/seal/sealing.h"
#include "proxy/modules/smb/seal/smb1_leg.h"

namespace longhaul::smb::seal {

class NearSmb1Sealing final : public LegSealing<Smb1Leg> {
 public:
  NearSmb1Sealing() : LegSealing(Smb1Leg(Smb1Leg::To::client)) {}
  bool takes(const TwinMessage& message, Outputs& out) override;
};

class FarSmb1Sealing final : public LegSealing<Smb1Leg> {
 public:
  // As FarSealing. No client has to be remembered as unopened: nothing is changed before a key is found.
  FarSmb1Sealing(std::shared_ptr<const ServerKeys> keys, Half& half, const std::shared_ptr<Unopened>&,
                 const modules::Ends&)
      : LegSealing(Smb1Leg(Smb1Leg::To::server)), keys_(std::move(keys)), half_(half) {}
  std::optional<Frame> from_lan(TimePoint now, const Frame& frame, Outputs& out) override;
  Frame from_stream(const Frame& frame) override;

 private:
  void logged_in(const Frame& frame, const smb1::Header& answer, Outputs& out);
  bool begin(const Frame& frame, const smb1::Header& answer, Outputs& out);
  void cannot_open(const Missing& missing, Outputs& out);

  std::shared_ptr<const ServerKeys> keys_;
  Half& half_;
  std::optional<Login> login_;  // the login in progress
};

}  // namespace longhaul::smb::seal
