// SPDX-License-Identifier: Apache-2.0
// One flow that crosses the link: a client's or a server's socket on one side, a stream on the other, and a
// pump for each direction. Which flows take the link, and who dials servers, is decided in flows.h.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "proxy/flows/flow_table.h"
#include "proxy/flows/module_host.h"
#include "proxy/link/io/peer_link.h"
#include "proxy/modules/modules.h"

namespace longhaul::flows {

// The pumps are plain functions and not coroutines: each is woken by two sources, its socket and the session,
// and a flow that waits should cost a handler, not two coroutine frames.
class LinkedFlow final : public link::StreamUser {
 public:
  enum class End : std::uint8_t { closed, reset };
  // Called once, from the loop; destroys the flow.
  using OnEnd = std::function<void(LinkedFlow&, End)>;
  // The far side's word on the connect; before any byte of the server.
  using OnAnswer = std::function<void(LinkedFlow&, const link::OpenAnswer&)>;

  LinkedFlow(boost::asio::ip::tcp::socket socket, link::PeerLink& link, link::Stream& stream,
             FlowRecord& record, OnEnd on_end);
  ~LinkedFlow() override;
  LinkedFlow(const LinkedFlow&) = delete;
  LinkedFlow& operator=(const LinkedFlow&) = delete;

  // This side's half of a module, before the flow is started: it sees every byte until it steps aside. `tell`
  // is called when it does, and when it says why it cannot do all it could.
  using TellReason = std::function<void(FlowRecord&, Reason)>;
  void use_module(const modules::Listed& module, std::unique_ptr<modules::Module> half, TellReason tell);

  // Near side. With Begin::after_answer the client's bytes wait until the far connect has succeeded.
  enum class Begin : std::uint8_t { at_once, after_answer };
  void start_near(Begin begin, std::function<std::string(ConnectOutcome)> reply, OnAnswer on_answer);

  // Far side, after the server was dialled.
  void start_far(boost::asio::ip::tcp::socket server, const link::OpenAnswer& answer);
  void refuse_far(ConnectOutcome outcome);

  // Near side, where the link is lost: the client as it was before the link had anything of it but the wish
  // to be connected. Nothing: the server may have some of its bytes, or the flow was answered. After this the
  // flow is over, and is to be destroyed; it does not call OnEnd.
  struct Client {
    boost::asio::ip::tcp::socket socket;
    std::function<std::string(ConnectOutcome)> reply;
    Buffer bytes;  // read of it
  };
  std::optional<Client> take_back();
  bool unanswered() const { return opening_ != nullptr && !finished_; }  // near side

  // Both directions are cut off now: this side's connection is reset, the peer is told.
  void cut();
  // The peer's process seems to have ended. The flow goes on all the same: if not, the peer will say so.
  void suspect_peer();

  FlowRecord& record() { return record_; }
  link::Stream* stream() { return stream_; }  // none after a reset
  link::PeerLink& link() const { return link_; }
  // Those in force have changed, and the stream knows.
  void features_changed();

  void on_stream_event(link::EventKind kind) override;

  // Owned by Flows' bookkeeping: whom the peer's end would leave in doubt of what was promised.
  std::optional<modules::Ends> doubted;

 private:
  enum class Pump : std::uint8_t { held, running, waiting, done };

  void prepare_socket();
  void pump_up();  // socket to stream
  void wait_to_read();
  void pump_down();  // stream to socket
  bool write_preface();
  bool deliver();
  ssize_t send_pieces(const SliceQueue& queue);

  // ---- With a module (linked_flow_module.cc).
  struct Hosted;
  void run_module();
  bool deliver_for_module();
  bool read_for_module(int& reads_left);
  void lose_lan();
  void stop_for_module();
  void after_module();
  void arm_module_timer();
  bool module_has(modules::Way way) const;
  bool module_is_done() const;
  void take_messages();
  void on_answer();
  void socket_failed();
  void watch_for_failure();
  void reset_socket();
  static constexpr int kDeliveryTries =
      1000;  // of 10 ms: how long a client that reads slowly delays its own reset
  void reset_after_delivery(int tries = kDeliveryTries);
  void reset_in_the_end();
  void finish_if_done();
  void finish(End end);
  void count();

  boost::asio::ip::tcp::socket socket_;
  link::PeerLink& link_;
  link::Stream* stream_;
  FlowRecord& record_;
  std::unique_ptr<OnEnd> on_end_;
  // Needed until the answer only, and not by every flow.
  struct Opening {
    std::function<std::string(ConnectOutcome)> reply;
    OnAnswer on_answer;
  };
  std::unique_ptr<Opening> opening_;
  std::string preface_;  // bytes for the client before those of the server
  std::shared_ptr<LinkedFlow*> self_;
  std::unique_ptr<boost::asio::steady_timer> timer_;
  Pump up_ = Pump::held, down_ = Pump::held;
  std::unique_ptr<Hosted> module_;
  bool had_module_ = false;    // its twin may still send messages
  bool peer_stopped_ = false;  // the other end's connection is closed: ours is reset behind what still comes
  bool watching_ = false;      // for a reset, while nobody reads
  bool finished_ = false;
};

}  // namespace longhaul::flows
