// SPDX-License-Identifier: Apache-2.0
// Stands between client and server of a flow that bypasses the link, and answers the first open that would
// continue with a file whose promised writes were lost (lost_writes.h). Splits frames and steps aside; each
// dialect's open_guard.h decides which requests are answered. If a loss cannot be reported, the connection is
// reset (LostRecord::kResetsFor).
#pragma once
#include <memory>

#include "proxy/modules/guard.h"
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/promises/telling.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/smb1/open_guard.h"
#include "proxy/modules/smb/smb2/open_guard.h"

namespace longhaul::smb {

class Guard final : public modules::Guard {
 public:
  Guard(const LostWrites::Ends& ends, std::shared_ptr<LostWrites> lost);
  ~Guard() override;

  void from_client(Slice bytes, Out& out) override;
  void from_server(Slice bytes, Out& out) override;
  void client_ended(Out& out) override;
  void server_ended(Out& out) override;
  std::uint64_t awaited() const override { return telling_.awaited(); }
  void arrived(std::uint64_t outputs) override { telling_.arrived(outputs); }
  bool give_up(Out& out) override;
  bool is_done() const override { return client_passes_ && server_passes_; }
  std::size_t held_bytes() const override { return client_.held_bytes() + server_.held_bytes(); }
  std::optional<modules::Reason> reason() const override {
    if (!lost_->any(ends_)) return std::nullopt;
    return reasons::lost_writes;
  }

 private:
  enum class From : std::uint8_t { client, server };
  void take_frames(From from, Out& out);
  bool understands(From from, const Frame& frame, Out& out);
  void pass(From from, Out& out);
  void review(Out& out);
  bool owes() const { return smb1_.owes() || smb2_.owes(); }

  LostWrites::Ends ends_;
  std::shared_ptr<LostWrites> lost_;
  FrameSplitter client_, server_;
  // Bytes from that side pass unchanged. For the client, see LiveFlows::enter_unguarded().
  bool client_passes_ = false, server_passes_ = false;
  Telling telling_;
  smb1::OpenGuard smb1_;
  smb2::OpenGuard smb2_;
};

}  // namespace longhaul::smb
