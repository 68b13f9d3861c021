// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/place.h"

#include <algorithm>

namespace longhaul::http {
namespace {

// Separates the parts of a key: no field and no target contains it, so that parts cannot be confused.
constexpr char kSeparator = '\0';

// The path of a reference to the same server (RFC 9110, section 10.2.2); empty: it leads elsewhere.
std::string path_of(std::string_view reference, std::string_view scheme, std::string_view host) {
  if (reference.starts_with("//")) return {};
  if (reference.starts_with('/')) return std::string(reference);
  if (reference.size() < scheme.size() || !same_name(reference.substr(0, scheme.size()), scheme)) return {};
  reference.remove_prefix(scheme.size());
  const std::size_t slash = std::min(reference.find('/'), reference.size());
  if (!same_name(reference.substr(0, slash), host)) return {};
  return slash == reference.size() ? "/" : std::string(reference.substr(slash));
}

}  // namespace

bool changes_something(const RequestHead& request) {
  return request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS" && request.method != "TRACE";
}

Place::Place(const modules::Ends& ends, std::string_view verified_name)
    : scheme_(verified_name.empty() ? "http://" : "https://") {
  server_.assign(reinterpret_cast<const char*>(ends.server.data()), ends.server.size());
  server_ += std::to_string(ends.server_port);
  server_ += kSeparator;
  // A server that is trusted under one name must not answer for another, whatever Host contains.
  if (verified_name.empty()) return;
  (server_ += "tls") += kSeparator;
  (server_ += verified_name) += kSeparator;
}

std::string Place::key_of(const RequestHead& request) const {
  return server_ + lower(request.fields.value("host")) + kSeparator + request.target;
}

void Place::invalidate(ObjectStore& store, const RequestHead& request, const ResponseHead& response) const {
  if (!changes_something(request) || response.status >= 400) return;
  store.erase(key_of(request));
  const std::string host = request.fields.value("host");
  for (const std::string_view name : {"location", "content-location"})
    if (const std::string path = path_of(response.fields.value(name), scheme_, host); !path.empty())
      store.erase(server_ + lower(host) + kSeparator + path);
}

}  // namespace longhaul::http
