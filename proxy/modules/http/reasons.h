// SPDX-License-Identifier: Apache-2.0
// Why an HTTP flow is not served from the cache: the texts of `longhaul why`.
#pragma once
#include <array>

#include "proxy/modules/reason.h"

namespace longhaul::http::reasons {

using modules::ReasonText;

inline constexpr ReasonText http_not_understood{
    "http_not_understood",
    "The flow is deduplicated and compressed, but something in it is not plain HTTP/1 (another protocol, or a message "
    "whose length is ambiguous), so the rest of it bypasses the cache.",
    "none needed"};
inline constexpr ReasonText http_upgraded{
    "http_upgraded",
    "The flow is deduplicated and compressed; its client switched to another protocol (WebSocket, HTTP/2, CONNECT), "
    "so the rest of it bypasses the cache.",
    "none needed"};

inline constexpr ReasonText http_begun{
    "http_begun",
    "The flow is deduplicated and compressed; its HTTP/2 client had begun an upload before the near side could read the "
    "connection, so the connection bypasses the cache.",
    "none needed; other connections of the same client are not affected"};

inline constexpr std::array kAll{&http_not_understood, &http_upgraded, &http_begun};

}  // namespace longhaul::http::reasons
