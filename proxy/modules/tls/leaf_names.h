// SPDX-License-Identifier: Apache-2.0
// Which names a certificate that is made for a server may have: those that both the server's own certificate
// and the table have. Pure.
#pragma once
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "proxy/config/name_pattern.h"

namespace longhaul::tls {

// `of_server`: a DNS name in the server's certificate, as written there; a wildcard stands for exactly one
// first label (RFC 9525, section 6.3). Adds the names that it has in common with `listed`. Other wildcards,
// and names that are not host names, match nothing.
void add_common_names(std::string_view of_server, std::span<const config::NamePattern> listed, std::set<std::string>& names);

}  // namespace longhaul::tls
