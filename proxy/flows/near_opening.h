// SPDX-License-Identifier: Apache-2.0
// A client's flow until the far side has answered: what the client receives, and how it is returned if the
// link is lost before the answer. linked_flow.h decides what follows.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "proxy/flows/lan_side.h"
#include "proxy/link/records.h"

namespace longhaul::flows {

class LinkedFlow;

class NearOpening {
 public:
  // The proxy's reply to the client, by the outcome. Empty for a client that is not aware of the proxy.
  using Reply = std::function<std::string(link::ConnectOutcome)>;
  // Called with the far side's answer to the connect, before any byte of the server.
  using OnAnswer = std::function<void(LinkedFlow&, const link::OpenAnswer&)>;

  NearOpening(Reply reply, OnAnswer on_answer) : reply_(std::move(reply)), on_answer_(std::move(on_answer)) {}

  bool replies_first() const { return static_cast<bool>(reply_); }
  void answered(LinkedFlow& flow, const link::OpenAnswer& answer, LanSide& lan) const {
    if (reply_) lan.set_preface(reply_(answer.outcome));
    if (on_answer_) on_answer_(flow, answer);
  }
  // The server was not reached: a SOCKS client receives a reply, any other client a reset.
  static void turn_away(LanSide& lan) {
    if (!lan.has_preface() || !lan.send_preface()) return lan.reset();
    lan.end_output();
    lan.close_gently();
  }

  // A client that is returned, with the bytes read from it.
  struct Client {
    boost::asio::ip::tcp::socket socket;
    Reply reply;
    Buffer bytes;
  };
  Client give_back(LanSide& lan, Buffer bytes) {
    return {lan.take_socket(), std::move(reply_), std::move(bytes)};
  }

 private:
  Reply reply_;
  OnAnswer on_answer_;
};

}  // namespace longhaul::flows
