// SPDX-License-Identifier: Apache-2.0
// Access control: the Host header must name this listener, and changes need the token. Pure functions.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <string_view>

namespace longhaul::control {

// True if `host` names this listener: "localhost", a loopback address, or the address the connection came to,
// each with its port. A web page whose own name resolves to this machine (DNS rebinding) sends that name, and
// is refused.
bool host_is_ours(std::string_view host, const boost::asio::ip::tcp::endpoint& local);

enum class TokenCheck { right, missing, wrong };
// `authorization` is the header's value: "Bearer TOKEN" (RFC 6750, section 2.1).
TokenCheck check_token(std::string_view authorization, std::string_view token);

}  // namespace longhaul::control
