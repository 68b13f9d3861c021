// SPDX-License-Identifier: Apache-2.0
// Which names a certificate that is made for a server may have: those that both the server's own certificate and the
// table have. Pure.
#pragma once
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "proxy/config/name_pattern.h"

namespace longhaul::tls {

// `of_server`: a DNS name of its certificate as it stands there, or with a wildcard for its first label, which stands for
// that one label (RFC 9525, section 6.3). Adds what it has in common with `listed`. Other wildcards, and what is no host
// name, have nothing in common with any.
void add_common_names(std::string_view of_server, std::span<const config::NamePattern> listed, std::set<std::string>& names);

}  // namespace longhaul::tls
