// SPDX-License-Identifier: Apache-2.0
// The server, in the model of writes: it answers in any order, and its page cache is not its disk.
#include "tests/model/writes.h"

namespace longhaul::model {
namespace {

bool peer_is_gone(const Flow& flow) {
  switch (flow.route) {
    case Route::linked:
    case Route::through_far:
      return !flow.far;
    case Route::past_near:
      return !flow.near;
    default:
      return !flow.client;
  }
}

}  // namespace

void Writes::server_steps(const State& state, Steps& out) const {
  for (unsigned i = 0; i < kFlows; ++i) {
    const Flow& flow = state.flows[i];
    if (!flow.server) continue;
    bool waits = false;  // an OPEN, for another connection's oplock
    for (unsigned place = 0; place < kQueue && flow.at_server.at[place] != 0; ++place) {
      const Message request = unpack(flow.at_server.at[place]);
      unsigned holder = kFlows;
      for (unsigned k = 0; k < kFlows; ++k)
        if (k != i && state.flows[k].oplock) holder = k;
      if (request.opens() && holder != kFlows) {
        waits = true;
        const Flow& old = state.flows[holder];
        State next = state;
        Flow& broken = next.flows[holder];
        broken.oplock = broken.may_promise = 0;
        if (old.near && old.far && !state.cut && old.to_far.empty() && old.at_server.empty() &&
            old.ledger.outstanding == 0) {
          add(out, next, "both halves give the oplock back, which another OPEN breaks", holder);
        } else if (((!old.near && !old.orderly) || !old.far || state.cut) && old.at_server.empty() &&
                   (state.cut || old.to_far.empty())) {
          broken.may_promise = old.may_promise;
          if (design_.fences_broken && old.far) far_ends(next, holder);
          add(out, next, "the server waits no longer for the oplock that another OPEN breaks", holder);
        }
        continue;
      }
      State next = state;
      next.flows[i].at_server.erase(place);
      execute(next, i, request);
      add(out, next, "the server does %m", i, flow.at_server.at[place]);
    }
    if (peer_is_gone(flow) && !waits) {
      State next = state;
      Flow& ended = next.flows[i];
      ended.server = ended.opened = ended.oplock = 0;
      ended.at_server = {};
      add(out, next, "the server sees the end of the connection, and closes the file", i);
    }
  }
}

void Writes::execute(State& state, unsigned number, Message message) const {
  Flow& flow = state.flows[number];
  const bool linked = flow.route == Route::linked;
  if (flow.session_gone) {
    message.answer = Answer::session_deleted;
  } else if (message.opens() && bounds_.extra == Extra::renames && message.name != state.name) {
    message.answer = Answer::not_found;
  } else if (message.opens()) {
    flow.opened = 1;
    if (flow.far) flow.far_name = message.name;
    if (message.kind == Kind::open_anew) {
      state.cache = {};
      if (design_.keeps_until_delivered && flow.route != Route::plain) {
        if (flow.near) remove_record(state.near, flow, message.name, Why::replaced);
        if (flow.far) remove_record(state.far, flow, message.name, Why::replaced);
      }
    }
    if (linked && promises() && !message.looks && !flow.far_unread && !flow.far_aside && !is_sealed(flow)) {
      flow.oplock = flow.permit = flow.held_at_far = 1;
      message.block = 1;
      mark(state.far, number, flow.number, flow.far_name);
    }
  } else if (message.kind == Kind::rename) {
    if (flow.opened) {
      state.name = 1;
      if (linked && flow.far && !flow.far_aside) renamed(state, state.far);
      // A near half whose client has left reads the answers to the end.
      if (linked && flow.renaming && !flow.near && !state.cut && !flow.far_aside) renamed(state, state.near);
    } else {
      message.answer = Answer::lost;
    }
    if (!flow.near) flow.renaming = 0;
  } else if (message.kind == Kind::stream) {
    if (!design_.streams_are_apart && flow.route != Route::plain) {
      if (flow.near) remove_record(state.near, flow, 0, Why::replaced);
      if (flow.far) remove_record(state.far, flow, 0, Why::replaced);
    }
  } else if (message.kind == Kind::write) {
    // Neither acknowledged nor waited for any more: done or not, directly too.
    if (!message.promised && !flow.client) return;
    if (!flow.opened) {
      message.answer = Answer::lost;
    } else if (state.full) {
      message.answer = Answer::disk_full;
    } else {
      state.cache[message.block] = message.edition;
      state.excused = static_cast<std::uint8_t>(state.excused & ~(1U << message.block));
    }
  } else if (message.kind == Kind::flush) {
    state.disk = state.cache;
  } else {
    flow.opened = flow.oplock = 0;
  }
  if (!linked) {
    if (flow.client) flow.to_client = pack(message);
    return;
  }
  if (!flow.far) return;
  if (message.promised && message.answer != Answer::success) flow.failed_at_far = 1;
  if (message.kind == Kind::close && message.answer == Answer::success) {
    flow.permit = 0;
    if (!flow.failed_at_far) unmark(state.far, number);
  }
  if (flow.near) flow.to_near.push(message);
}

}  // namespace longhaul::model
