// SPDX-License-Identifier: Apache-2.0
// Client data that reached the server before this half could decrypt it. A simple beginning, as all browsers
// send it, can be taken over; read_early() rejects any other.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "proxy/modules/http/h2/session.h"

namespace longhaul::http::h2 {

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// The end of the frame that contains `at`, after the preface; `at` itself on a frame boundary. Returns
// nullopt while the frame's length is not known.
std::optional<std::size_t> frame_end(Bytes said, std::size_t at);

// Whether these are whole frames, without a part of a header block.
bool has_no_headers(Bytes frames);

struct Early {
  std::optional<Session::Settings> settings;  // none after the preface alone
  std::vector<std::pair<StreamId, std::int32_t>>
      windows;  // increments of flow-control windows; stream 0: the connection's
  std::size_t requests = 0;
};
// Reads the preface and whole frames: SETTINGS, requests without content, WINDOW_UPDATE and PRIORITY. Returns
// nullopt if there is any other frame.
std::optional<Early> read_early(Bytes said);

// Whether these can be the first bytes of an HTTP/2 server that sends first: a SETTINGS frame.
bool may_be_server(Bytes first);

}  // namespace longhaul::http::h2
