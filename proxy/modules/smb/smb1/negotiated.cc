// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/negotiated.h"

#include <algorithm>
#include <string_view>

namespace longhaul::smb::smb1 {

std::vector<std::uint16_t> nt_lm_012_in(const Block& negotiate) {
  std::vector<std::uint16_t> indices;
  const auto request = parse_negotiate_request(negotiate);
  if (!request) return indices;
  // Samba's and early NT's name for the same dialect.
  for (std::size_t i = 0; i < request->dialects.size(); ++i) {
    const std::string_view name = request->dialects[i];
    if (name == "NT LM 0.12" || name == "NT LANMAN 1.0") indices.push_back(static_cast<std::uint16_t>(i));
  }
  return indices;
}

// [MS-CIFS] 2.2.3.1: while a session is set up the bit only offers.
void Negotiated::on_request(const Header& header) {
  if (header.is_signed() && why_untouchable_ == reasons::optimised && header.command != Command::negotiate &&
      header.command != Command::session_setup_andx)
    why_untouchable_ = reasons::smb_signed;
}

void Negotiated::on_session_setup(const Block& block) {
  const auto setup = parse_session_setup_request(block);
  if (!setup) return;
  client_capabilities_ = setup->capabilities;
  client_buffer_ = setup->max_buffer;
}

void Negotiated::on_reply(const Message& reply, const std::vector<std::uint16_t>& offered) {
  const auto negotiated = parse_negotiate_reply(reply.first());
  if (!negotiated || !negotiated->nt_lm_012 || !std::ranges::count(offered, negotiated->dialect)) {
    why_untouchable_ = reasons::smb_not_understood;
    return;
  }
  ready_ = true;
  // Servers announce about 50; the list of pending requests is searched linearly.
  constexpr std::uint16_t kMostMpx = 256;
  max_mpx_ = std::min(negotiated->max_mpx, kMostMpx);
  capabilities_ = negotiated->capabilities;
  server_time_ =
      std::chrono::local_seconds{negotiated->system_time.time_since_epoch()} - negotiated->time_zone;
  if ((negotiated->security_mode & kSigningRequired) && !is_sealed_) why_untouchable_ = reasons::smb_signed;
}

std::uint32_t Negotiated::max_read_bytes() const {
  // [MS-SMB] 3.3.5.8 and what servers do: 128 KiB with all heads.
  constexpr std::uint32_t kLarge = 0x1FFFF - 64, kHeads = 64;
  if (large_reads()) return kLarge;
  return client_buffer_ > kHeads ? client_buffer_ - kHeads : 0;
}

}  // namespace longhaul::smb::smb1
