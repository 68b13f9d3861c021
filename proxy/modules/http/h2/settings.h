// SPDX-License-Identifier: Apache-2.0
// The settings of each connection for its peer, with a window of this size for each stream (RFC 9113, section
// 6.5.2).
#pragma once
#include <nghttp2/nghttp2.h>

#include "proxy/modules/http/h2/session.h"

namespace longhaul::http::h2 {

inline Session::Settings settings_for_server(std::int32_t window) {
  return {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
          {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(window)},
          {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, Session::kMostBlockBytes}};
}

inline Session::Settings settings_for_client(std::int32_t window, std::uint32_t most_streams) {
  return {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, most_streams},
          {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(window)},
          {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, Session::kMostBlockBytes},
          {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
}

}  // namespace longhaul::http::h2
