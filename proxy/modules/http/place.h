// SPDX-License-Identifier: Apache-2.0
// Where the responses of one server are stored, for all versions of HTTP, and which of them become void by a
// change at the server.
#pragma once
#include <string>
#include <string_view>

#include "proxy/modules/http/object_store.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

// By the request's method.
bool changes_something(const RequestHead& request);

class Place {
 public:
  // `verified_name`: the server's name in its certificate if the connection was decrypted; empty for
  // plaintext HTTP.
  Place(const modules::Ends& ends, std::string_view verified_name);

  std::string_view scheme() const { return scheme_; }
  // The name in the client's request is not sufficient without the destination address: otherwise a client
  // could have responses of its own server stored under another server's name.
  std::string key_of(const RequestHead& request) const;
  // The common prefix of all its keys.
  std::string keys_begin() const { return server_; }
  // If a request that changes something has succeeded: makes the stored responses for its target, and for
  // targets that the response names, void (RFC 9111, section 4.4).
  void invalidate(ObjectStore& store, const RequestHead& request, const ResponseHead& response) const;

 private:
  std::string scheme_;  // "http://" or "https://"
  std::string server_;  // address, port and verified name: the prefix of each key
};

}  // namespace longhaul::http
