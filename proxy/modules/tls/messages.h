// SPDX-License-Identifier: Apache-2.0
// The messages between the two halves. Before `Keys` and `Taken` both directions of the stream carry the
// client's own TLS records; after them, and from the beginning after `Resumed`, plaintext.
#pragma once
#include <cstdint>
#include <tuple>
#include <variant>

#include "codecs/slice.h"
#include "proxy/modules/twin/codec.h"

namespace longhaul::tls {

// Changes with the messages and their meaning: another version is another module.
inline constexpr std::uint64_t kModuleVersion = 6;

// Far to near: the client's handshake is completed, or will be with the client's Finished (`is_early`,
// TLS 1.3 only); plaintext of the server follows. The secrets are those of this connection alone (RFC 8446,
// section 7.1, *_application_traffic_secret_0; in TLS 1.2 key and IV of each direction).
struct Keys {
  std::uint16_t suite = 0;
  Slice client_secret, server_secret;
  std::uint64_t client_records = 0;  // up to the client's Finished; the next is number 0 (1.2: 1)
  std::uint64_t server_records = 0;  // sent so far under the server's secret
  Slice name;                        // of the server: in its certificate and in the client's request
  bool is_private = false;           // Entry::is_private
  // Not empty: early keys. These are the records up to the server's Finished, for the client, which therefore
  // cannot answer before the near half has the keys. Nothing was sent under the secrets, so both numbers are
  // 0: the client's records follow its Finished, and what it gets before data is the near half's to send
  // (Session::ticket).
  static constexpr std::size_t kMostFlightBytes = 32 * 1024;
  Slice flight;
  bool is_early() const { return !flight.empty(); }
  static constexpr auto kFields =
      std::tuple(&Keys::suite, &Keys::client_secret, &Keys::server_secret, &Keys::client_records,
                 &Keys::server_records, &Keys::name, &Keys::is_private, &Keys::flight);
};
// Near to far: `Keys` has arrived, and if they were early, the client's first record under them; plaintext of
// the client follows.
struct Taken {
  static constexpr std::tuple<> kFields{};
};
// Both directions, before the end: the connection ended without close_notify, so data may be missing.
struct Truncated {
  static constexpr std::tuple<> kFields{};
};
// Far to near, for each record that the client sent between its Finished and `Taken`, in order and before the
// server's response: its plaintext, which the server has received.
struct Said {
  // Limit for all of them together: more is not worth the line, and is reported once with `is_known` false.
  static constexpr std::size_t kMostBytes = 16 * 1024;
  bool is_known = true;
  Slice bytes;
  static constexpr auto kFields = std::tuple(&Said::is_known, &Said::bytes);
};
// Far to near, after `Keys`: the client may resume this session at the near half.
struct Session {
  static constexpr std::size_t kMost = 4;  // of one connection
  Slice id, bytes;                         // in the format of i2d_SSL_SESSION()
  Slice entry;                             // Entry::stamp; for the same stamp, Keys::is_private is the same
  // After early keys: the message NewSessionTicket, which the client does not have yet. Otherwise empty.
  static constexpr std::size_t kMostTicketBytes = 4096;
  Slice ticket;
  static constexpr auto kFields =
      std::tuple(&Session::id, &Session::bytes, &Session::entry, &Session::ticket);
};
// Near to far, as the first message: the client has resumed a session of this entry.
struct Resumed {
  Slice name, entry;
  Slice protocol;  // chosen by the server at that time (ALPN); empty: none
  static constexpr auto kFields = std::tuple(&Resumed::name, &Resumed::entry, &Resumed::protocol);
};
// Far to near, while the stream is plaintext: the next `bytes` bytes are a message of the module that parses
// the plaintext.
struct OfReader {
  static constexpr std::uint32_t kMostBytes = 256 * 1024;
  std::uint32_t bytes = 0;
  static constexpr auto kFields = std::tuple(&OfReader::bytes);
  std::uint32_t attached_bytes() const { return bytes; }
};
// Both directions, while the stream is plaintext, before the end: the server (client) has ended the
// connection with this fatal alert (RFC 8446, section 6.2), and reads nothing more.
struct Alerted {
  std::uint8_t description = 0;
  static constexpr auto kFields = std::tuple(&Alerted::description);
};
using Message = std::variant<Keys, Taken, Truncated, Said, Session, Resumed, OfReader, Alerted>;

}  // namespace longhaul::tls
