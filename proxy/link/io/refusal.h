// SPDX-License-Identifier: Apache-2.0
// Why a connection to the link's port was not authenticated: a table with a code, a sentence and a remedy for
// each case. refusal_log.h counts and logs them.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace longhaul::link {

enum class Refusal : std::uint8_t {
  source_rate,       // more handshakes from one source than its budget
  no_place,          // too many in progress
  timed_out,         // not done in time
  ended,             // by the other side, before the handshake was done
  not_tls,           // another protocol
  unsupported,       // TLS without common parameters
  too_long,          // handshake messages that no peer sends
  no_certificate,    // no certificate to identify a peer
  unknown_key,       // a key of no [[peer]]
  rejected_by_peer,  // the other side does not accept this site's key
  failed,            // any other error that OpenSSL reports
};

struct RefusalText {
  Refusal refusal;
  std::string_view code;      // in status and metrics
  std::string_view sentence;  // what happened
  std::string_view remedy;    // what the operator can do if the sender is one of the sites
};

inline constexpr std::array kRefusalTable{
    RefusalText{Refusal::source_rate, "source_rate", "too many handshakes from this source",
                "none for a stranger; a peer that reconnects so often logs the reason"},
    RefusalText{Refusal::no_place, "no_place", "too many handshakes are in progress",
                "raise [limits] handshakes if this happens without an attack"},
    RefusalText{Refusal::timed_out, "timed_out", "the handshake timed out",
                "none for a stranger; for a peer, check the path for loss and its MTU"},
    RefusalText{Refusal::ended, "ended", "the remote host closed the connection during the handshake",
                "none for a stranger; a peer logs the reason"},
    RefusalText{Refusal::not_tls, "not_tls", "the remote host does not speak TLS",
                "none for a stranger; for a peer, check its address and that no middlebox changes the bytes"},
    RefusalText{
        Refusal::unsupported, "unsupported",
        "the remote host offers no TLS 1.3 with X25519 or P-256 and an ECDSA P-256 or Ed25519 signature",
        "none for a stranger; upgrade a peer to the same version"},
    RefusalText{
        Refusal::too_long, "too_long", "the handshake is longer than that of any peer can be",
        "none for a stranger; a peer's certificate must be shorter than 8 KiB, like those of `longhaul "
        "keygen`"},
    RefusalText{Refusal::no_certificate, "no_certificate", "the remote host sent no certificate",
                "none: peers always send one"},
    RefusalText{Refusal::unknown_key, "unknown_key", "the key of the remote host is in no [[peer]]",
                "if it is a peer, add this fingerprint to its [[peer]] and run `longhaul reload`"},
    RefusalText{Refusal::rejected_by_peer, "rejected_by_peer",
                "the remote host rejected the key of this site",
                "if it is a peer, add this site's fingerprint to the [[peer]] there"},
    RefusalText{Refusal::failed, "failed", "the TLS handshake failed", "none for a stranger"},
};

constexpr const RefusalText& explain(Refusal refusal) {
  return kRefusalTable[static_cast<std::size_t>(refusal)];
}

using RefusalCounts = std::array<std::uint64_t, kRefusalTable.size()>;

}  // namespace longhaul::link
