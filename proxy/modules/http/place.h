// SPDX-License-Identifier: Apache-2.0
// Where the responses of one server are stored, whichever version of HTTP they came by, and which of them a
// change at the server makes void.
#pragma once
#include <string>
#include <string_view>

#include "proxy/modules/http/object_store.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

// By its method.
bool changes_something(const RequestHead& request);

class Place {
 public:
  // `verified_name`: of the server of a decrypted connection, by its certificate; empty: it is in the clear.
  Place(const modules::Ends& ends, std::string_view verified_name);

  std::string_view scheme() const { return scheme_; }
  // The name that a client gives is worth nothing without the address that it went to: otherwise a client
  // could have its own server's answers stored under another's name.
  std::string key_of(const RequestHead& request) const;
  // The common prefix of all its keys.
  std::string keys_begin() const { return server_; }
  // A request that changes something has succeeded: its target and what the response names are no longer what
  // is stored (RFC 9111, section 4.4). Any other exchange changes nothing.
  void invalidate(ObjectStore& store, const RequestHead& request, const ResponseHead& response) const;

 private:
  std::string scheme_;  // "http://" or "https://"
  std::string server_;  // address, port and verified name, the beginning of each key
};

}  // namespace longhaul::http
