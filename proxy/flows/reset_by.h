// SPDX-License-Identifier: Apache-2.0
// Which party reset a flow that did not end with both ends' FIN, for `why` and the counters. linked_flow.h
// and flows.h determine it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace longhaul::flows {

enum class ResetBy : std::uint8_t {
  nobody,  // live, or both ends have closed it
  client,
  server,
  near,  // the proxy at the client's site
  far,   // the proxy at the server's site
  link,  // lost for too long, or with the peer's process
};

struct ResetText {
  ResetBy by;
  std::string_view code;
  std::string_view sentence;
  std::string_view remedy;
};

inline constexpr std::array kResetTexts{
    ResetText{ResetBy::client, "client", "The client reset the connection.",
              "none needed if the client program intends this; otherwise check the client"},
    ResetText{ResetBy::server, "server", "The server refused or reset the connection.",
              "see the log of the service on the server"},
    ResetText{ResetBy::near, "near", "The proxy at the client's site reset the flow.",
              "see the log there (flow_refused, promise_lost, stopping)"},
    ResetText{ResetBy::far, "far", "The proxy at the server's site reset the flow.",
              "see the log there (flow_refused, promise_lost, stopping)"},
    ResetText{ResetBy::link, "link",
              "The link was lost for a minute, or the peer's daemon ended, so the flow was reset.",
              "see the log (session_over, peer_stopped) and check the WAN between the sites"}};

// Null for nobody.
constexpr const ResetText* text_of(ResetBy by) {
  for (const ResetText& text : kResetTexts)
    if (text.by == by) return &text;
  return nullptr;
}

using CountByParty = std::array<std::uint64_t, kResetTexts.size()>;  // in the order of the texts

}  // namespace longhaul::flows
