// SPDX-License-Identifier: Apache-2.0
// One flow that crosses the link: a client's or a server's socket on one side, a stream on the other. Handles
// its life cycle: how it starts, and how an answer, an end or a failure of either side affects the other.
// flow_ending.h carries its end out; plain_pump.h and module_side.h move bytes between lan_side.h and
// wan_side.h; paths.h decides which flows use the link, and far_flows.h which servers are dialled.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "proxy/flows/flow_ending.h"
#include "proxy/flows/lan_side.h"
#include "proxy/flows/module_side.h"
#include "proxy/flows/near_opening.h"
#include "proxy/flows/reset_party.h"
#include "proxy/flows/server_redial.h"
#include "proxy/flows/wan_side.h"

namespace longhaul::flows {

// Plain functions and not coroutines: each direction is woken by two sources, its socket and the session, and
// a flow that waits should cost a handler, not two coroutine frames.
class LinkedFlow final : public link::StreamUser, private LanSide::User {
 public:
  using End = FlowEnding::End;
  // Called once, from the event loop; destroys the flow.
  using OnEnd = std::function<void(LinkedFlow&, End)>;

  LinkedFlow(boost::asio::ip::tcp::socket socket, link::PeerLink& link, link::Stream& stream,
             FlowRecord& record, OnEnd on_end);
  ~LinkedFlow() override;
  LinkedFlow(const LinkedFlow&) = delete;
  LinkedFlow& operator=(const LinkedFlow&) = delete;

  // Sets this side's half of a module, before the flow is started: it reads every byte until it steps aside.
  using TellReason = ModulePump::TellReason;
  void use_module(const modules::Listed& module, std::unique_ptr<modules::Module> half, TellReason tell);

  // Near side. With Begin::after_answer the client's bytes wait until the far connect has succeeded.
  enum class Begin : std::uint8_t { at_once, after_answer };
  void start_near(Begin begin, NearOpening opening);

  // Far side, after the server was dialled. `redial` connects it again, where a module requires that or a
  // trial has failed, and then calls start_again(), with a closed socket on failure. `trial`: the flow's
  // module if the connection was made before the client connected (trial.h); null if it was made for this flow.
  void start_far(boost::asio::ip::tcp::socket server, const link::OpenAnswer& answer,
                 std::function<void()> redial, const modules::Listed* trial = nullptr);
  void start_again(boost::asio::ip::tcp::socket server);
  // Whether the server is being connected again because a trial has failed.
  bool renews_server() const { return redial_.renews(); }
  void refuse_far(ConnectOutcome outcome);

  // Near side, when the link is lost: returns the client if only the request to connect was sent. Returns
  // nullopt if the server may have received bytes of it, or the flow was answered. After a client was
  // returned, the flow is over and must be destroyed; it does not call OnEnd.
  std::optional<NearOpening::Client> take_back();
  bool unanswered() const { return opening_ != nullptr && !ending_.is_over(); }  // near side

  // Aborts both directions now: resets this side's connection, and notifies the peer.
  void cut(ResetBy by);
  // The peer's process seems to have ended. The flow continues, in case the peer is still alive and responds
  // later.
  void suspect_peer();

  FlowRecord& record() { return record_; }
  link::Stream* stream() { return wan_.stream(); }  // null after a reset
  link::PeerLink& link() const { return wan_.link(); }
  // The features in force have changed, and the stream was updated.
  void features_changed();
  // Whether its module has forbidden to store any of its bytes in a dictionary.
  bool is_private() const { return wan_.is_private(); }

  void on_stream_event(link::EventKind kind) override;

  // Set by LinkedFlows: the client and server whose promises are in doubt if the peer has ended.
  std::optional<modules::Ends> doubted;
  // Set by NearFlows: held while neither a guard nor a module reads the client's bytes (modules/losses.h).
  std::vector<std::shared_ptr<void>> unguarded;
  // Called once, when the module has stepped aside from the client's bytes. May be empty.
  std::function<void()> on_unread;

 private:
  using Pump = LanSide::Pump;

  // LanSide::User
  void on_lan_readable() override { move_up(); }
  void on_lan_writable() override { move_down(); }
  void on_lan_failed() override { lan_failed(); }

  void move_up();    // socket to stream
  void move_down();  // stream to socket
  void stream_ended();
  void on_answer();
  void on_stopped();
  void lan_failed();

  void run_module();
  void after_module(ModuleSide::Next next);
  void renew_server();
  void move_on();

  void finish_if_done();

  FlowRecord& record_;
  WanSide wan_;
  LanSide lan_;
  FlowEnding ending_;
  std::unique_ptr<NearOpening> opening_;  // near side, until the answer
  ResetParty party_{record_};
  ModuleSide module_{lan_, record_};
  ServerRedial redial_{lan_};
  // Near side: the client's connection is closed, and only the peer's end is awaited.
  bool is_served_ = false;
  bool aborting_ = false;      // the module has given up, but its last bytes are still being delivered
  bool peer_stopped_ = false;  // the other end's connection is closed: ours is reset after the remaining data
};

}  // namespace longhaul::flows
