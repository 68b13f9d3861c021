// SPDX-License-Identifier: Apache-2.0
// The near half, and the near daemon's relay of connections that bypass the link, in the model of writes.
#include <utility>

#include "tests/model/writes.h"

namespace longhaul::model {

bool Writes::promises() const {
  if (bounds_.in_stream && design_.not_through_streams) return false;
  const bool reports = bounds_.policy != Policy::reconnects && bounds_.policy != Policy::ignores_close;
  return reports || !design_.only_to_clients_that_report;
}

void Writes::near_steps(const State& state, Steps& out) const {
  for (unsigned i = 0; i < kFlows; ++i) {
    const Flow& flow = state.flows[i];
    if (!flow.near) continue;
    if (flow.held != 0) near_opens(state, i, out);
    if (flow.proved && flow.telling == 1) {
      State next = state;
      delivered(next, next.flows[i]);
      add(out, next, "the near daemon learns that the client has read the error, and forgets the loss", i);
      continue;
    }
    if (flow.route == Route::past_near) {
      State next = state;
      next.flows[i].near = 0;
      next.flows[i].held = 0;
      if (!flow.client) add(out, next, "the near daemon sees the client's end", i);
      continue;
    }
    if (!flow.to_near.empty() && !state.cut) {
      State next = state;
      near_takes(next, i);
      add(out, next,
          unpack(flow.to_near.at[0]).kind == Kind::aside
              ? "the near half hears that the far one no longer reads the server's answers"
          : unpack(flow.to_near.at[0]).promised ? "the near half learns what became of the promised %m: %s"
                                                : "the near half passes the answer to %m on: %s",
          i, flow.to_near.at[0]);
    }
    // After a while without a WRITE.
    if (flow.may_promise && !flow.settled && !flow.unread && !flow.ledger.owes() && flow.to_far.empty() &&
        !state.cut) {
      State next = state;
      next.flows[i].settled = 1;
      unmark(next.near, i);
      next.flows[i].to_far.push({.kind = Kind::settled});
      add(out, next, "the near half says that nothing is promised any more", i);
    }
    State next = state;
    if (flow.aborted && flow.to_near.empty() && !state.cut) {
      near_ends(next, i, Rest::dropped);
      next.flows[i].far = 0;
      unmark(next.far, i);
      add(out, next, "the near half learns that the server's connection is gone, and resets the client's", i);
    } else if (!flow.far) {
      near_ends(next, i, Rest::dropped);
      add(out, next, "the near half finds the far one gone, and resets the client's connection", i);
    } else if (state.cut) {
      near_ends(next, i, Rest::dropped);
      add(out, next, "the near half has heard nothing for a minute, and resets the client's connection", i);
    } else if (!flow.client && flow.ledger.outstanding == 0) {
      near_ends(next, i, Rest::goes_on);
      add(out, next, "the near half ends what the client has ended", i);
    }
  }
}

bool Writes::near_is_renaming(const State& state) const {
  for (const Flow& flow : state.flows)
    if (flow.renaming) return true;
  return false;
}

// Nobody may change what crosses this connection: a half without keys, or that is past the answers, or a
// guard.
bool Writes::is_sealed(const Flow& flow) const {
  if (flow.deaf) return true;
  if (bounds_.seal == Seal::none) return false;
  return flow.route != Route::linked || (bounds_.seal == Seal::first_key && flow.guid != 0);
}

// Whether a request that continues with a file is to be told of a record.
bool Writes::tells(const Memory& memory, const Flow& flow, const Message& asked, std::uint8_t name) const {
  const bool is_guard = flow.route != Route::linked;
  if (is_guard && !design_.guards_bypassing) return false;
  if (is_sealed(flow)) {
    if (!(is_guard ? design_.resets_sealed : design_.stays_where_sealed)) return false;
    if (bounds_.encrypted) return memory.known.has_any(client_of(flow));
  }
  if (asked.kind == Kind::rename && (!design_.tells_renames || (is_guard && !flow.tracks))) return false;
  if (asked.kind == Kind::open_anew || asked.looks) return false;
  return has_record(memory, flow, name);
}

// What follows is the connection's end.
void Writes::tell_by_reset(Memory& memory, Flow& flow, std::uint8_t name) const {
  flow.telling = 3;
  if (!design_.reset_ends_record) return;
  for (std::uint8_t each = 0; each < kNames; ++each)
    if (each == name || bounds_.encrypted) remove_record(memory, flow, each, Why::told);
}

// An OPEN or a RENAME meets what is remembered, and what the client's other connections still owe.
void Writes::near_opens(const State& state, unsigned number, Steps& out) const {
  State next = state;
  Flow& flow = next.flows[number];
  const Message open = unpack(flow.held);
  const bool renames = open.kind == Kind::rename, is_linked = flow.route == Route::linked;
  const std::uint8_t name = renames ? flow.near_name : open.name;
  const bool asks = is_linked || design_.guards_bypassing;
  const bool looks = is_linked ? design_.waits_for_owing_connections && !open.looks
                               : asks && design_.ends_owing_connections && !renames;
  for (unsigned k = 0; k < kFlows && looks; ++k) {
    const Flow& old = next.flows[k];
    if (k == number || !old.near || old.route != Route::linked || !old.ledger.owes()) continue;
    if (old.near_name != name) continue;
    // The link is gone for a connection that bypasses it: it may not come back for the older one either. Over
    // the link an OPEN waits as long as the older one makes progress; the end of a server's process is told.
    const bool silent_server = (state.failures & only(Failure::server_power)) != 0;
    const bool stands_still = state.cut || !old.far || silent_server;
    if (is_linked && old.ledger.outstanding != 0 && !stands_still) return;
    near_ends(next, k, Rest::goes_on);
  }
  flow.held = 0;
  note_deliveries(next, 1);
  if (tells(next.near, flow, open, name)) {
    if (is_sealed(flow)) {
      tell_by_reset(next.near, flow, name);
      if (is_linked)
        near_ends(next, number, Rest::dropped);
      else
        flow.near = 0;
      return add(out, next, "the near daemon remembers the loss, cannot answer %m, and resets the connection",
                 number, pack(open));
    }
    Message answer = open;
    answer.answer = Answer::lost;
    flow.to_client = pack(answer);
    flow.telling = 1;
    flow.telling_name = name;
    if (!design_.keeps_until_delivered) remove_record(next.near, flow, name, Why::told);
    return add(out, next, "the near daemon remembers the loss and answers %m with LOST_WRITEBEHIND_DATA",
               number, pack(open));
  }
  if (asks && !design_.keeps_until_delivered && open.kind == Kind::open_anew)
    remove_record(next.near, flow, name, Why::replaced);
  if (!is_linked) {
    flow.near_name = name;
    if (open.opens()) flow.tracks = has_record(next.near, flow, name);
    if (flow.server) flow.at_server.push(open);
    return add(out, next, "the near daemon relays %m to the server", number, pack(open));
  }
  Message passed = open;
  if (!design_.only_after_open) {
    passed.promised = 1;
    flow.to_client = pack(open);
    flow.may_promise = promises();
  }
  if (renames) flow.renaming = 1;
  flow.to_far.push(passed);
  add(out, next, "the near half passes %m on", number, pack(open));
}

void Writes::near_takes(State& state, unsigned number) const {
  Flow& flow = state.flows[number];
  Message answer = unpack(flow.to_near.at[0]);
  flow.to_near.erase(0);
  if (answer.kind == Kind::aside) return near_hears_aside(state, number);
  if (flow.deaf || (flow.unread && !design_.aside_owes_nothing)) {
    if (flow.client && !answer.promised) flow.to_client = pack(answer);
    return;
  }
  if (answer.promised) {
    if (answer.kind == Kind::write) flow.ledger.kept(answer.write(), answer.answer);
    if (flow.ledger.lost != 0 && !design_.late_errors_name_no_cause && flow.ledger.cause == Answer::success)
      flow.ledger.cause = answer.answer;
    if (answer.kind == Kind::write && answer.answer != Answer::success && design_.records_failures)
      add_record(state, state.near, flow);
    return;
  }
  if (answer.opens()) {
    const bool held = answer.answer == Answer::success && answer.block != 0;
    answer.block = 0;
    if (answer.answer == Answer::success) flow.near_name = answer.name;
    if (held && !flow.unread) {
      flow.may_promise = flow.stops ? 0 : 1;
      mark(state.near, number, flow.number, flow.near_name);
    }
  } else if (answer.kind == Kind::rename) {
    flow.renaming = 0;
    if (answer.answer == Answer::success) renamed(state, state.near);
  } else if (answer.kind != Kind::stream) {
    if (answer.kind == Kind::write && std::exchange(flow.settled, 0))
      mark(state.near, number, flow.number, flow.near_name);
    const bool owed = flow.ledger.lost == 2;
    if (owed && answer.kind == Kind::close && design_.resets_for_close)
      return near_ends(state, number, Rest::goes_on);
    const Answer final = flow.ledger.settle(answer.answer);
    if (owed && design_.records_failures) {
      flow.telling = 1;
      flow.telling_name = flow.near_name;
    }
    if (design_.late_errors_name_no_cause)
      answer.answer = final;
    else if (owed && answer.answer == Answer::success)
      answer.answer = flow.ledger.cause;
    if (answer.kind == Kind::close && answer.answer != Answer::session_deleted) {
      flow.may_promise = 0;
      unmark(state.near, number);
    }
  }
  if (flow.client) flow.to_client = pack(answer);
}

// With the far half in touch, its part ends with this one: what is owed is recorded here.
void Writes::near_ends(State& state, unsigned number, Rest rest) const {
  Flow& flow = state.flows[number];
  if (flow.ledger.owes() && design_.near_remembers) add_record(state, state.near, flow);
  flow.near = 0;
  flow.stops = flow.unread = flow.deaf = 0;
  if (rest == Rest::dropped || state.cut) flow.renaming = 0;
  flow.held = 0;
  flow.may_promise = flow.settled = 0;
  flow.ledger = {};
  flow.to_near = {};
  flow.aborted = 0;
  if (flow.telling == 1) flow.telling = flow.proved = 0;
  if (rest == Rest::dropped) flow.to_far = {};
  if (!state.cut && flow.far) flow.orderly = 1;
  unmark(state.near, number);
}

}  // namespace longhaul::model
