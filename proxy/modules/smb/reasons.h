// SPDX-License-Identifier: Apache-2.0
// Why the SMB module does not optimise a flow fully, for display. The codes are interfaces: metrics use them
// as labels.
#pragma once
#include <array>

#include "proxy/modules/reason.h"

namespace longhaul::smb::reasons {

using modules::ReasonText;
using modules::reasons::memory_limit;
using modules::reasons::optimised;

// No request is answered early:
inline constexpr ReasonText smb_signed{
    "smb_signed",
    "The flow is deduplicated and compressed, but its SMB requests are signed and the far side has no "
    "key of this server, so round trips are not saved.",
    "give the far side this server's keytab: [[smb_server]] with its address"};
inline constexpr ReasonText smb_encrypted{
    "smb_encrypted",
    "The flow uses the link, but its SMB requests are encrypted and the far side has no key of this server, so "
    "neither round trips nor bytes are saved.",
    "give the far side this server's keytab: [[smb_server]] with its address"};
inline constexpr ReasonText smb_ticket{"smb_ticket",
                                       "The client's Kerberos ticket matches no key in the keytab that the "
                                       "far side has for this server, so its signed "
                                       "or encrypted requests save no round trips.",
                                       "see the far side's log (flow_reason) for the encryption type and key "
                                       "version, export the keytab again, and "
                                       "run longhaul keytab test, then longhaul reload"};
inline constexpr ReasonText smb_ntlm_user{
    "smb_ntlm_user",
    "The user logged in with NTLM, and the far side has no matching hash of the user's password, so its signed or "
    "encrypted requests save no round trips.",
    "have the client use Kerberos (the server's name, not its address), or add the user to ntlm_hashes of the far "
    "side's [[smb_server]]"};
inline constexpr ReasonText smb_old_ntlm{
    "smb_old_ntlm",
    "The user logged in with NTLMv1 or LM, whose keys this program does not use, so its signed or encrypted requests "
    "save no round trips.",
    "have the client use Kerberos or NTLMv2 (LmCompatibilityLevel 3 or higher)"};
inline constexpr ReasonText smb_anonymous{
    "smb_anonymous",
    "The session is anonymous or a guest session, which has no key, so its requests save no round trips.",
    "have the client log in as a user"};
inline constexpr ReasonText smb_login{
    "smb_login",
    "The server refused the client's login, or it uses a mechanism that is not supported (IAKerb, PKU2U, NegoEx or "
    "another), or only a part of it was seen, so its signed or encrypted requests save no round trips.",
    "see the far side's log (flow_reason); have the client use Kerberos with a domain controller that it reaches"};
inline constexpr ReasonText smb_clock{
    "smb_clock",
    "The server refused the client's Kerberos ticket, because their clocks differ by more than five minutes, or the "
    "ticket is not yet or no longer valid by the server's clock, so the login failed.",
    "set the clocks of the client, the server and the domain controller (NTP); the clocks of the proxies do not matter"};
inline constexpr ReasonText smb_wrong_key{
    "smb_wrong_key",
    "The client's login was opened, but the server's answer shows another session key, so its signed or encrypted "
    "requests save no round trips.",
    "none needed for a single session; otherwise please report the client and server software"};
// The connection was reset, and the message was not passed on:
inline constexpr ReasonText smb_forged{
    "smb_forged",
    "A message of this SMB session had an invalid signature or encryption, or repeated an earlier one, so the "
    "connection was reset.",
    "if it happens again: something between this proxy and its client or server changes the messages; find out what"};
inline constexpr ReasonText smb_unprotected{
    "smb_unprotected",
    "A message of this SMB session was not signed or encrypted although it must be, so the connection was reset.",
    "if it happens again, please report the client and server software"};
inline constexpr ReasonText smb_multichannel{
    "smb_multichannel",
    "The flow is deduplicated and compressed, but its SMB session uses several connections "
    "(multichannel), so round trips are not saved.",
    "turn SMB multichannel off at the client or the server"};
inline constexpr ReasonText smb_session{
    "smb_session",
    "The flow is deduplicated and compressed, but its SMB session was resumed, has expired or has ended, "
    "so round trips are not saved.",
    "none needed; the client's next connection is fully optimised again"};
inline constexpr ReasonText smb_not_understood{
    "smb_not_understood",
    "The flow is deduplicated and compressed, but contains something that this version does not "
    "recognise as SMB, so round trips are no longer saved.",
    "none needed; if it is SMB, please report the client and server software"};

// Bypassing the link, with a guard in the flow:
inline constexpr ReasonText lost_writes{
    "lost_writes",
    "Writes of this client that were acknowledged early have been lost. The flow does not use the link, but "
    "this proxy answers the next open of each such file with an error, once.",
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
    "The flow is optimised, but its client has a connection that bypasses the link, or could open one: "
    "client "
    "and server support SMB multichannel and the server has other addresses. So its writes wait for the "
    "server.",
    "turn SMB multichannel off at the client or the server, or give the server one address; connections that "
    "began while the link was down use it once the client connects again"};
inline constexpr ReasonText smb_not_recorded{
    "smb_not_recorded",
    "The flow is optimised, but this proxy cannot record on its disk for which files it acknowledges writes early, "
    "so writes wait for the server.",
    "see the log (promised_files): state_dir may be full or failing; none needed if a client has more "
    "than a few hundred files open for writing"};
inline constexpr ReasonText smb_hides_errors{
    "smb_hides_errors",
    "The flow is optimised, but its client (jcifs, or Linux's kernel without oplocks) does not report to "
    "programs that a file could not be closed, so its writes wait for the server.",
    "none needed"};

inline constexpr std::array kAll{&smb_signed,
                                 &smb_encrypted,
                                 &smb_ticket,
                                 &smb_ntlm_user,
                                 &smb_old_ntlm,
                                 &smb_anonymous,
                                 &smb_login,
                                 &smb_clock,
                                 &smb_wrong_key,
                                 &smb_forged,
                                 &smb_unprotected,
                                 &smb_multichannel,
                                 &smb_session,
                                 &smb_not_understood,
                                 &lost_writes,
                                 &smb_client_caches,
                                 &smb_other_paths,
                                 &smb_not_recorded,
                                 &smb_hides_errors};

// A twin of another version may have other codes.
inline modules::Reason with_code(std::string_view code) {
  for (const ReasonText* const each : kAll)
    if (each->code == code) return *each;
  return smb_signed;
}

}  // namespace longhaul::smb::reasons
