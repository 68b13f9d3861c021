// SPDX-License-Identifier: Apache-2.0
// SMB on ports 445 and 139: cuts both directions into frames, waits for the NEGOTIATE that decides the
// dialect, gives the frames to that dialect's half (smb1/, smb2/), and steps aside where nothing is
// understood or nothing is to gain.
#pragma once
#include <memory>

#include "proxy/modules/smb/ahead_cache.h"
#include "proxy/modules/smb/half.h"

namespace longhaul::smb {

// Both halves of a flow must have the same; travels in the open request.
inline constexpr std::uint16_t kModuleVersion = 1;

enum class Side : std::uint8_t { near, far };  // the client's, the server's

// What the flows of a site share.
struct Site {
  std::shared_ptr<AheadAccount> ahead = std::make_shared<AheadAccount>();
};

class SmbModule final : public modules::Module {
 public:
  SmbModule(Side side, std::uint16_t port, const Site& site);
  ~SmbModule() override;

  void on_surroundings(TimePoint now, const modules::Surroundings& surroundings) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint now, Slice message) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_stepped_aside(TimePoint now) override;
  void on_timeout(TimePoint now) override;
  std::optional<modules::Output> poll_output() override;
  std::optional<TimePoint> next_timeout() const override;
  const modules::Counters& counters() const override;
  flows::Reason reason() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longhaul::smb
