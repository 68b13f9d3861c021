// SPDX-License-Identifier: Apache-2.0
// What a client has said to a server before anybody could read it. Simple beginnings, as all browsers make
// them, can be continued in the client's place; of any other this says so.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "proxy/modules/http/h2/session.h"

namespace longhaul::http::h2 {

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Where the frame ends in which `at` lies, behind the preface; `at` itself between two. Nothing: that is not
// known yet.
std::optional<std::size_t> frame_end(Bytes said, std::size_t at);

struct Early {
  std::optional<Session::Settings> settings;  // nothing: only the preface
  std::vector<std::pair<StreamId, std::int32_t>>
      windows;  // by how much they were widened; 0: the connection's
  std::size_t requests = 0;
};
// Of the preface and whole frames: SETTINGS, requests without content, windows and priorities. Nothing: there
// is more.
std::optional<Early> read_early(Bytes said);

// Whether a server that speaks first, as it may with HTTP/2, can have begun so: with its SETTINGS.
bool may_be_server(Bytes first);

}  // namespace longhaul::http::h2
