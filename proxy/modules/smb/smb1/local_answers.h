// SPDX-License-Identifier: Apache-2.0
// What the near half may currently answer in the server's place, as far as the whole connection is concerned:
// what the configuration allows, and nothing once a side can no longer be parsed. The parts check the
// conditions of a single file.
#pragma once
#include "proxy/modules/smb/features.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

class LocalAnswers {
 public:
  // `connection` outlives this object.
  explicit LocalAnswers(const Connection& connection) : connection_(connection) {}

  void on_surroundings(const Surroundings& surroundings) { surroundings_ = surroundings; }
  const Surroundings& surroundings() const { return surroundings_; }

  // The client, or the server, sends nothing more that can be parsed.
  void client_is_over() { client_over_ = true; }
  void server_is_over() { server_over_ = true; }
  bool is_client_over() const { return client_over_; }

  bool may(bool Features::*feature) const {
    return surroundings_.features.*feature && connection_.is_ready() && !client_over_ && !server_over_;
  }

 private:
  const Connection& connection_;
  Surroundings surroundings_;
  bool client_over_ = false, server_over_ = false;
};

}  // namespace longhaul::smb::smb1
