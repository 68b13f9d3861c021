// SPDX-License-Identifier: Apache-2.0
// How console and agent make sure of each other: same program, same version of its protocol, same token. The
// token itself never crosses the network. Pure; connection.h says when each message is sent.
#pragma once
#include <boost/json/object.hpp>
#include <string>

namespace longhaul::measuring {

struct Identity {
  std::string program;  // "longhaul-txn"
  int version = 1;      // of the messages that follow the greeting
  std::string token;    // empty: peers without a token
};

enum class Side { dials, listens };

// One side's part of one greeting. Both send hello(), both read the other's; then the one that dialled proves
// that it has the token, and the one that listens does so only after that.
class Greeting {
 public:
  Greeting(Identity identity, Side side);  // draws a nonce

  boost::json::object hello() const;
  // Both throw Trouble with a sentence that names the difference; `peer` is how a person would call the other
  // side.
  void read_hello(const boost::json::object& message, const std::string& peer);
  boost::json::object proof() const;
  void read_proof(const boost::json::object& message, const std::string& peer) const;

 private:
  std::string proof_of(Side side) const;

  Identity identity_;
  Side side_;
  std::string nonce_;
  std::string peer_nonce_;
};

}  // namespace longhaul::measuring
