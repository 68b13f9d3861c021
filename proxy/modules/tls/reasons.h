// SPDX-License-Identifier: Apache-2.0
// Why a TLS flow is not decrypted: the texts of `longhaul why`.
#pragma once
#include <array>

#include "proxy/modules/reason.h"

namespace longhaul::tls::reasons {

using modules::ReasonText;

inline constexpr ReasonText tls_not_understood{
    "tls_not_understood",
    "The flow passes unchanged: it is not TLS, or its ClientHello is not understood.", "none needed"};
inline constexpr ReasonText tls_no_name{
    "tls_no_name",
    "The flow stays encrypted: its client did not name the server (no SNI), and an address alone is not enough to decrypt it.",
    "none needed; clients that name the server are decrypted"};
inline constexpr ReasonText tls_not_listed{
    "tls_not_listed",
    "The flow stays encrypted: no [[tls_server]] lists this address together with this name and client.",
    "none needed, or list the name in [[tls_server]] at the far side"};
inline constexpr ReasonText tls_version{"tls_version",
                                        "The flow stays encrypted: its client offers neither TLS 1.3 nor TLS "
                                        "1.2 with AES-GCM or ChaCha20 that fits the "
                                        "certificate in [[tls_server]], or no version that the server has.",
                                        "none needed, or update the client"};
inline constexpr ReasonText tls_server_refused{
    "tls_server_refused",
    "The flow stays encrypted: the handshake of this proxy with the server failed. Its certificate does not "
    "verify, it is below TLS 1.2, or it has no protocol (ALPN) in common with the client.",
    "look for tls_server_refused in this side's log, which names OpenSSL's error; name the server's CA with ca in "
    "[[tls_server]]"};
inline constexpr ReasonText tls_client_certificate{
    "tls_client_certificate",
    "The flow stays encrypted: the server asks for a certificate of the client, whose key only the client has.",
    "none needed"};
inline constexpr ReasonText tls_client_refused{
    "tls_client_refused",
    "The flow stays encrypted for a day: this client has refused the certificate of [[tls_server]] for this "
    "name.",
    "compare the certificate in [[tls_server]] with the server's own, or, where certificates are minted, "
    "install their CA at the "
    "client; after longhaul reload it is tried again at once"};

inline constexpr ReasonText tls_not_minted{
    "tls_not_minted",
    "The flow stays encrypted: no certificate could be minted for it. The CA in [[tls_server]] is not valid "
    "now or "
    "may not sign for this name, or the server's certificate has no subject alternative name (SAN) for it.",
    "look for tls_not_minted in this side's log, which gives the cause; run longhaul check"};

inline constexpr ReasonText tls_key_unavailable{
    "tls_key_unavailable",
    "The flow stays encrypted: the PKCS#11 token that holds the key in [[tls_server]] is missing, refuses "
    "its PIN, fails, or does not answer.",
    "look for server_key_unavailable in this side's log, which gives the cause; run longhaul check"};

inline constexpr ReasonText tls_ech{"tls_ech",
                                    "The flow stays encrypted: its client uses Encrypted Client Hello with a "
                                    "key of this server, and the listed "
                                    "name is only its public name.",
                                    "none needed"};

// The connection was decrypted, and then reset:
inline constexpr ReasonText tls_server_floods{
    "tls_server_floods",
    "The server sent more than 32 handshake messages (such as KeyUpdate) with hardly any data between them, "
    "so the connection was reset.",
    "check the server: TLS libraries do not send that many by themselves"};

inline constexpr std::array kAll{
    &tls_not_understood,     &tls_no_name,        &tls_not_listed, &tls_version,         &tls_server_refused,
    &tls_client_certificate, &tls_client_refused, &tls_not_minted, &tls_key_unavailable, &tls_ech,
    &tls_server_floods};

}  // namespace longhaul::tls::reasons
