// SPDX-License-Identifier: Apache-2.0
// Who may ask what: the Host header must name this listener, changes need the token. Pure functions; the
// answers are written in api.cc.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <string_view>

namespace longhaul::control {

// True where `host` is how this very listener is called: "localhost", a loopback address, or the address the
// connection came to, each with its port. A web page that points its own name at this machine (DNS rebinding)
// sends that name, and is refused.
bool host_is_ours(std::string_view host, const boost::asio::ip::tcp::endpoint& local);

enum class TokenCheck { right, missing, wrong };
// `authorization` is the header's value: "Bearer TOKEN" (RFC 6750, section 2.1).
TokenCheck check_token(std::string_view authorization, std::string_view token);

}  // namespace longhaul::control
