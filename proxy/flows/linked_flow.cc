// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/linked_flow.h"

#include "proxy/flows/plain_pump.h"

namespace longhaul::flows {
using boost::asio::ip::tcp;
using link::EventKind;
using link::ReadState;
using modules::Way;

LinkedFlow::LinkedFlow(tcp::socket socket, link::PeerLink& link, link::Stream& stream, FlowRecord& record,
                       OnEnd on_end)
    : record_(record),
      wan_(link, stream, record),
      lan_(std::move(socket), record.bytes, *this),
      ending_(lan_, wan_, [this, on_end = std::move(on_end)](End end) { on_end(*this, end); }) {
  link.give_user(stream.id(), *this);
}

LinkedFlow::~LinkedFlow() = default;

// ---- the beginning

void LinkedFlow::use_module(const modules::Listed& module, std::unique_ptr<modules::Module> half,
                            TellReason tell) {
  module_.begin(module, std::move(half), *wan_.stream(), std::move(tell), [this] { run_module(); });
  if (peer_stopped_) module_.stream_stopped();
}

void LinkedFlow::start_near(Begin begin, NearOpening opening) {
  lan_.prepare();
  opening_ = std::make_unique<NearOpening>(std::move(opening));
  lan_.down = Pump::running;
  if (begin == Begin::at_once) {
    lan_.up = Pump::running;
    move_up();
  }
  wan_.kick();
}

void LinkedFlow::start_far(tcp::socket server, const link::OpenAnswer& answer, std::function<void()> redial,
                           const modules::Listed* trial) {
  if (module_.is_there()) redial_.allow(std::move(redial));
  lan_.use(std::move(server));
  lan_.prepare();
  if (trial && redial_.is_allowed()) lan_.begin_trial(*trial->descriptor.connect_ahead, trial->memory);
  wan_.stream()->give_answer(answer);
  lan_.up = lan_.down = Pump::running;
  move_on();
  wan_.kick();
}

// The connection to the server was made ahead and has failed. The client's bytes are sent on a new one.
void LinkedFlow::renew_server() {
  if (!ending_.is_over()) redial_.for_trial();
}

void LinkedFlow::start_again(tcp::socket server) {
  if (ending_.is_over()) return;
  const ServerRedial::For whom = redial_.dialled(module_.redials());
  if (whom == ServerRedial::For::module) module_.use_new_lan();
  if (peer_stopped_) server = tcp::socket(lan_.executor());  // it is no longer needed
  if (!redial_.use(std::move(server), whom)) return lan_failed();
  move_on();
}

void LinkedFlow::move_on() {
  move_down();
  if (!ending_.is_over()) move_up();
}

void LinkedFlow::refuse_far(ConnectOutcome outcome) {
  party_.note(outcome == ConnectOutcome::refused ? ResetBy::server : ResetBy::far);
  wan_.stream()->give_answer({.outcome = outcome});
  // The answer, then the abort: the near side resets its client.
  wan_.stream()->abort();
  ending_.finish(End::reset);
}

void LinkedFlow::on_answer() {
  auto opening = std::move(opening_);
  const link::OpenAnswer answer = *wan_.stream()->answer();
  if (opening) opening->answered(*this, answer, lan_);
  if (answer.outcome != ConnectOutcome::connected) {
    party_.note(answer.outcome == ConnectOutcome::refused ? party_.other_end() : party_.other_proxy());
    if (module_.has(Way::to_lan) && (record_.bytes.lan_out > 0 || module_.has_bytes_for_lan())) {
      module_.abort();  // after the client has received its response, which needed no server
      wan_.stream()->abort();
      return run_module();
    }
    NearOpening::turn_away(lan_);
    wan_.stream()->abort();
    return ending_.finish(End::reset);
  }
  // The peer has a module of this name and version, otherwise the flow would not have been opened with it.
  // Without that half, the peer could not read the data already sent.
  if (!wan_.stream()->request().module.empty() && !answer.module_accepted) return cut(party_.other_proxy());
  if (lan_.up == Pump::held) {
    lan_.up = Pump::running;
    move_up();
  }
  if (!ending_.is_over()) move_down();
}

std::optional<NearOpening::Client> LinkedFlow::take_back() {
  // A module may have changed its input, and an end that the server may have received would be sent twice.
  if (!unanswered() || !wan_.stream() || lan_.up == Pump::done ||
      (module_.is_there() && record_.bytes.lan_in > 0))
    return std::nullopt;
  auto bytes = wan_.stream()->take_back();
  if (!bytes) return std::nullopt;
  ending_.leave();
  return std::exchange(opening_, nullptr)->give_back(lan_, std::move(*bytes));
}

// ---- moving bytes

void LinkedFlow::move_up() {
  if (module_.has(Way::to_stream)) return run_module();
  if (lan_.up != Pump::running || ending_.is_over()) return;
  const MovedUp moved = pump_up(lan_, *wan_.stream());
  if (lan_.is_stale()) return renew_server();
  if (moved.stop == UpStop::lan_failed) return lan_failed();
  if (moved.stop == UpStop::lan_ended) {
    wan_.stream()->writer().end();
    lan_.up = Pump::done;
  }
  if (moved.wrote || moved.stop == UpStop::lan_ended) wan_.kick();
  wan_.count();
  if (moved.stop == UpStop::no_room) lan_.watch_for_failure();
  if (moved.stop == UpStop::lan_empty) lan_.wait_to_read();
  if (moved.stop == UpStop::lan_ended) finish_if_done();
}

void LinkedFlow::move_down() {
  if (module_.has(Way::to_lan)) return run_module();
  if (lan_.down != Pump::running || ending_.is_over()) return;
  if (lan_.has_preface() && !lan_.send_preface()) return lan_failed();
  wan_.count();  // also if the client reads more slowly than the line delivers
  const link::Duration round_trip = wan_.round_trip();
  const MovedDown moved = pump_down(lan_, *wan_.stream(), round_trip);
  if (lan_.is_stale()) renew_server();
  if (moved.stop == DownStop::lan_full) return wan_.kick();
  if (moved.stop == DownStop::lan_failed) return lan_failed();
  if (module_.had_one() && module_.take_messages(*wan_.stream(), round_trip)) run_module();
  if (ending_.is_over()) return;
  // Credit may have to be reported.
  if (moved.consumed) wan_.kick();
  wan_.count();
  stream_ended();
}

// Handles the end or reset after the stream's bytes, if it was reached.
void LinkedFlow::stream_ended() {
  switch (wan_.stream()->reader().state()) {
    case ReadState::open:
      return;
    case ReadState::ended:
      lan_.end_output();
      lan_.down = Pump::done;
      if (peer_stopped_) return ending_.reset_after_delivery();
      return finish_if_done();
    case ReadState::aborted:
    case ReadState::reset:
      party_.note(party_.of(wan_.stream()->reset_code()));
      lan_.down = Pump::done;
      return ending_.reset_after_delivery();
  }
}

void LinkedFlow::on_stream_event(EventKind kind) {
  if (ending_.is_over()) return;
  switch (kind) {
    case EventKind::answered:
      return on_answer();
    case EventKind::readable:
      // The other end's connection was reset. This side's client is reset even if it does not read earlier
      // data.
      if (lan_.down == Pump::waiting && wan_.stream()->reader().state() == ReadState::aborted &&
          !ending_.waits_to_reset() && !module_.has(Way::to_lan)) {
        party_.note(party_.other_end());
        return ending_.reset_in_the_end();
      }
      return move_down();
    case EventKind::writable:
      return move_up();
    case EventKind::features:
      wan_.on_features();
      return features_changed();
    case EventKind::stopped:
      return on_stopped();
    case EventKind::reset:
      module_.twin_lost();  // a reset may overtake earlier messages
      wan_.count();
      party_.note(party_.of(wan_.stream()->reset_code()));
      lan_.reset();
      return ending_.finish(is_served_ ? End::closed : End::reset);
    case EventKind::opened:
      return;
  }
}

// The other end's connection is closed. Its earlier data is still delivered; then this side's connection is
// reset.
void LinkedFlow::on_stopped() {
  peer_stopped_ = true;
  party_.note(party_.other_end());
  if (module_.has(Way::to_lan)) {
    module_.stream_stopped();
    return run_module();
  }
  lan_.up = Pump::done;
  if (lan_.down == Pump::done) ending_.reset_after_delivery();
}

// ---- with a module

void LinkedFlow::features_changed() {
  if (!ending_.is_over() && module_.features_changed()) run_module();
}

void LinkedFlow::suspect_peer() {
  if (!ending_.is_over()) module_.twin_lost();
}

void LinkedFlow::run_module() {
  if (ending_.is_over() || aborting_) return;
  // Output before the far side's answer is made by the module: the server has not sent anything yet.
  const bool replies_first = opening_ && opening_->replies_first();
  const auto to_client = replies_first ? ModulePump::ToClient::waits : ModulePump::ToClient::open;
  const ModuleSide::Ran ran = module_.run(wan_.link().session(), wan_.link().session_id(), to_client);
  if (module_.is_private()) wan_.keep_private();  // before anything of it is encoded
  if (on_unread && module_.is_unread()) std::exchange(on_unread, nullptr)();
  if (ran.any) wan_.kick();
  wan_.count();
  after_module(ran.next);
  if (lan_.is_stale()) renew_server();
}

void LinkedFlow::after_module(ModuleSide::Next next) {
  using Next = ModuleSide::Next;
  if (module_.redials()) {
    if (redial_.is_allowed()) redial_.for_module();
  } else if (module_.lan_lost()) {
    party_.note(party_.this_end());
  }
  if (next == Next::gives_up) return cut(party_.this_proxy());
  if (next != Next::goes_on) {
    party_.note(wan_.stream()->reader().state() == ReadState::aborted ? party_.other_end() : party_.this_proxy());
    wan_.stream()->abort();
    wan_.kick();
    if (module_.lan_lost()) return ending_.finish(End::reset);
    if (next == Next::aborts) return;
    aborting_ = true;
    return ending_.reset_after_delivery();
  }
  if (record_.far_side && module_.has_unwanted_lan_bytes()) return cut(party_.this_proxy());
  const ModulePump::Left left = module_.leave();
  if (left.up) move_up();
  if (left.down && !ending_.is_over()) move_down();
  if (!ending_.is_over()) finish_if_done();
}

// ---- the end

void LinkedFlow::cut(ResetBy by) {
  if (ending_.is_over()) return;
  party_.note(by);
  if (wan_.stream()) wan_.stream()->reset(link::ResetCode::aborted);
  lan_.reset();
  ending_.finish(is_served_ ? End::closed : End::reset);
}

// This side's connection was reset: after its data, the other's is reset, too.
void LinkedFlow::lan_failed() {
  if (ending_.is_over()) return;
  if (lan_.make_stale()) return renew_server();
  if (module_.has(Way::to_stream)) {
    module_.lose_lan();
    return run_module();
  }
  party_.note(party_.this_end());
  wan_.stream()->abort();
  wan_.count();
  ending_.finish(End::reset);
}

void LinkedFlow::finish_if_done() {
  if (lan_.up != Pump::done || lan_.down != Pump::done || !module_.is_done()) return;
  // A half may have ended both sides by itself. Its twin does so, too: the near half when the client has
  // received everything, the far half when the server has closed, unless the server goes on sending.
  const bool twin_may_end = record_.far_side || !module_.has_unwanted_bytes();
  if (wan_.stream()->reader().state() != ReadState::open || !twin_may_end) return ending_.finish(End::closed);
  // What the kernel still has to deliver does not depend on the link any more.
  lan_.close_gently();
  is_served_ = !record_.far_side;
}

}  // namespace longhaul::flows
