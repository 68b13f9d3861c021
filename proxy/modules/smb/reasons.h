// SPDX-License-Identifier: Apache-2.0
// Why the SMB module does not optimise a flow fully, for people. The codes are interfaces: metrics use them
// as labels.
#pragma once
#include <array>

#include "proxy/modules/reason.h"

namespace longhaul::smb::reasons {

using modules::ReasonText;
using modules::reasons::memory_limit;
using modules::reasons::optimised;

// Nothing is answered early:
inline constexpr ReasonText smb_signed{
    "smb_signed",
    "The flow is deduplicated and compressed, but its SMB requests are signed and this proxy has no "
    "key, so round trips are not saved.",
    "if your policy allows it, stop requiring SMB signing at the client or the server"};
inline constexpr ReasonText smb_encrypted{
    "smb_encrypted",
    "The flow uses the link, but its SMB requests are encrypted and this proxy has no key, so neither "
    "round trips nor bytes are saved.",
    "if your policy allows it, turn SMB encryption off for the share or the server: the link between "
    "the sites is encrypted"};
inline constexpr ReasonText smb_multichannel{
    "smb_multichannel",
    "The flow is deduplicated and compressed, but its SMB session uses several connections "
    "(multichannel), so round trips are not saved.",
    "turn SMB multichannel off at the client or the server"};
inline constexpr ReasonText smb_session{
    "smb_session",
    "The flow is deduplicated and compressed, but its SMB session was resumed or has expired, so round "
    "trips are not saved.",
    "none needed; the client's next connection is fully optimised again"};
inline constexpr ReasonText smb_not_understood{
    "smb_not_understood",
    "The flow is deduplicated and compressed, but contains something that this version does not "
    "recognise as SMB, so round trips are no longer saved.",
    "none needed; if it is SMB, please report the client and server software"};

// Bypassing the link, while the guard reads the flow:
inline constexpr ReasonText lost_writes{
    "lost_writes",
    "Writes of this client that were acknowledged early have been lost. The flow does not use the link, but "
    "this proxy reads its requests and answers the next open of each such file with an error, once.",
    "see the log (promise_lost) for the files, and write them again; longhaul status says why the link "
    "is not used"};

// Optimised, but writes wait for the server:
inline constexpr ReasonText smb_client_caches{
    "smb_client_caches",
    "The flow is optimised, but its client caches files (it requests oplocks or leases) and does not "
    "report late errors to programs, so its writes wait for the server.",
    "none needed; to trade safety of writes in a failure for speed, set smb.write_behind_cached = true "
    "at both sites"};
inline constexpr ReasonText smb_other_paths{
    "smb_other_paths",
    "The flow is optimised, but its client and server support SMB multichannel and the server has other "
    "addresses, over which the client could bypass this proxy, so its writes wait for the server.",
    "turn SMB multichannel off at the client or the server, or give the server one address"};
inline constexpr ReasonText smb_not_recorded{
    "smb_not_recorded",
    "The flow is optimised, but this proxy cannot record on its disk which files it acknowledges writes of, "
    "so that its writes wait for the server.",
    "see the log (promised_files): state_dir may be full or failing; none needed where a client has more "
    "than a few hundred files open for writing"};
inline constexpr ReasonText smb_hides_errors{
    "smb_hides_errors",
    "The flow is optimised, but its client's library (jcifs) does not tell its program when closing a "
    "file fails, so its writes wait for the server.",
    "none needed"};

inline constexpr std::array kAll{&smb_signed,        &smb_encrypted,      &smb_multichannel,
                                 &smb_session,       &smb_not_understood, &lost_writes,
                                 &smb_client_caches, &smb_other_paths,    &smb_not_recorded,
                                 &smb_hides_errors};

}  // namespace longhaul::smb::reasons
