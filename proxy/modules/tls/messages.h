// SPDX-License-Identifier: Apache-2.0
// What the two halves say to each other. Before `Keys` and `Taken` both directions of the stream carry the client's own
// TLS records; after them, and from the beginning after `Resumed`, plaintext.
#pragma once
#include <cstdint>
#include <tuple>
#include <variant>

#include "codecs/slice.h"
#include "proxy/modules/twin/codec.h"

namespace longhaul::tls {

// Of the messages and of what they mean: another one is another module.
inline constexpr std::uint64_t kModuleVersion = 4;

// Far to near: the handshake is over; what follows is plaintext of the server. The secrets are those of this one
// connection (RFC 8446, section 7.1, *_application_traffic_secret_0; in TLS 1.2 key and IV of each direction).
struct Keys {
  std::uint16_t suite = 0;
  Slice client_secret, server_secret;
  std::uint64_t client_records = 0;  // of the client, up to its Finished: the next one has number 0 under its secret (1.2: 1)
  std::uint64_t server_records = 0;  // sent so far under the server's secret
  Slice name;                        // of the server, which its certificate has and the client asked for
  bool is_private = false;           // Entry::is_private
  static constexpr auto kFields =
      std::tuple(&Keys::suite, &Keys::client_secret, &Keys::server_secret, &Keys::client_records, &Keys::server_records,
                 &Keys::name, &Keys::is_private);
};
// Near to far: `Keys` has arrived; what follows is plaintext of the client.
struct Taken {
  static constexpr std::tuple<> kFields{};
};
// Either way, before the end: the connection ended without close_notify, so more may have been meant to follow.
struct Truncated {
  static constexpr std::tuple<> kFields{};
};
// Far to near, for each record that the client sent between its Finished and `Taken`, in their order and before what the
// server says to it: its plaintext, which the server has.
struct Said {
  // Of all of them together: more is not worth the line, and is said with `is_known` false, once.
  static constexpr std::size_t kMostBytes = 16 * 1024;
  bool is_known = true;
  Slice bytes;
  static constexpr auto kFields = std::tuple(&Said::is_known, &Said::bytes);
};
// Far to near, after `Keys`: the client may resume this session at the near half.
struct Session {
  static constexpr std::size_t kMost = 4;  // of one connection
  Slice id, bytes;                         // as i2d_SSL_SESSION() writes it
  Slice entry;                             // Entry::stamp; with it, Keys::is_private stays the same
  static constexpr auto kFields = std::tuple(&Session::id, &Session::bytes, &Session::entry);
};
// Near to far, before anything else: the client has resumed a session of this entry.
struct Resumed {
  Slice name, entry;
  Slice protocol;  // that the server chose then (ALPN); empty: none
  static constexpr auto kFields = std::tuple(&Resumed::name, &Resumed::entry, &Resumed::protocol);
};
// Far to near, while the stream is plain: the next `bytes` bytes are a message of the module that reads the plaintext.
struct OfReader {
  static constexpr std::uint32_t kMostBytes = 256 * 1024;
  std::uint32_t bytes = 0;
  static constexpr auto kFields = std::tuple(&OfReader::bytes);
  std::uint32_t attached_bytes() const { return bytes; }
};
using Message = std::variant<Keys, Taken, Truncated, Said, Session, Resumed, OfReader>;

}  // namespace longhaul::tls
