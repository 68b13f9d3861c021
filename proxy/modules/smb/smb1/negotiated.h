// SPDX-License-Identifier: Apache-2.0
// What client and server have agreed on: the dialect, sizes, capabilities, signatures. Whether the messages
// of the connection may be answered, changed or extended follows from that; the first reason why not stays.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/smb1/records.h"

namespace longhaul::smb::smb1 {

// The indices of NT LM 0.12 among the dialects that a NEGOTIATE offers.
std::vector<std::uint16_t> nt_lm_012_in(const Block& negotiate);

class Negotiated {
 public:
  // As Half::seals() and Half::cannot_open().
  void seals() { is_sealed_ = true; }
  void cannot_open(modules::Reason reason) {
    is_sealed_ = false;
    why_untouchable_ = reason;
  }

  // Every request of the client, and its SESSION_SETUP_ANDX.
  void on_request(const Header& header);
  void on_session_setup(const Block& block);
  // The server's answer to NEGOTIATE; `offered`: nt_lm_012_in() the request.
  void on_reply(const Message& reply, const std::vector<std::uint16_t>& offered);

  // NT LM 0.12 was negotiated, without signing, or with signatures that end before this half.
  bool is_ready() const { return ready_ && why_untouchable_ == reasons::optimised; }
  modules::Reason why_untouchable() const { return why_untouchable_; }

  std::uint16_t max_mpx() const { return max_mpx_; }
  // The server's local time was this when it answered the NEGOTIATE.
  std::chrono::local_seconds server_time() const { return server_time_; }
  // The largest READ that one answer may carry to this client.
  std::uint32_t max_read_bytes() const;
  std::uint32_t max_answer_bytes() const { return client_buffer_; }

 private:
  bool large_reads() const { return (capabilities_ & client_capabilities_ & kCapLargeReadX) != 0; }

  bool ready_ = false;
  bool is_sealed_ = false;
  modules::Reason why_untouchable_ = reasons::optimised;
  std::uint16_t max_mpx_ = 1;
  std::chrono::local_seconds server_time_{};
  std::uint32_t capabilities_ = 0, client_capabilities_ = 0;
  std::uint32_t client_buffer_ = 0;
};

}  // namespace longhaul::smb::smb1
