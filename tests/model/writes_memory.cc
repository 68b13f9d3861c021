// SPDX-License-Identifier: Apache-2.0
// Daemons that are short of memory, in the model of writes: a half, or a guard, steps aside from a connection
// and passes the rest of it unread.
#include "tests/model/writes.h"

namespace longhaul::model {

// Of this client, at this daemon: it could continue there without being told.
bool Writes::has_unread(const State& state) {
  for (const Flow& flow : state.flows)
    if (flow.near && flow.unread) return true;
  return false;
}

bool Writes::others_owe(const State& state, unsigned number) const {
  for (unsigned k = 0; k < kFlows; ++k) {
    const Flow& flow = state.flows[k];
    if (k != number && flow.near && flow.route == Route::linked && flow.ledger.owes()) return true;
  }
  return false;
}

void Writes::memory_steps(const State& state, Steps& out) const {
  if (bounds_.memory == Short::none) return;
  for (unsigned i = 0; i < kFlows; ++i) {
    const Flow& flow = state.flows[i];
    if (bounds_.memory == Short::near && flow.near && !flow.unread) near_gives_up(state, i, out);
    if (bounds_.memory != Short::far || !flow.far || flow.unread || flow.far_aside || flow.far_unread)
      continue;
    State next = state;
    next.was_short = 1;
    if (flow.route == Route::linked) {
      // Not while it has to change the server's answers.
      if (!flow.server || flow.aborted || !flow.at_server.empty()) continue;
      next.flows[i].far_aside = 1;
      if (!design_.doubts_behind_aside) next.flows[i].permit = 0;
      next.flows[i].to_near.push({.kind = Kind::aside});
      add(out, next, "the far daemon is short of memory and no longer reads the server's answers", i, 0,
          false);
    } else if (flow.held == 0) {
      end_orphans(next, i);
      if (next.far.known.has_any(client_of(flow)))
        next.flows[i].far = 0;
      else
        next.flows[i].unread = 1;
      add(out, next,
          next.flows[i].unread ? "the far daemon is short of memory and reads the connection no longer"
                               : "the far daemon is short of memory and resets the connection",
          i, 0, false);
    }
  }
}

// The near half stops promising, then waits until it owes nothing.
void Writes::near_gives_up(const State& state, unsigned number, Steps& out) const {
  const Flow& flow = state.flows[number];
  const bool linked = flow.route == Route::linked;
  State next = state;
  if (linked && !flow.stops) {
    next.flows[number].stops = 1;
    next.flows[number].may_promise = 0;
    return add(out, next, "the near daemon is short of memory and promises nothing more", number, 0, false);
  }
  if (flow.held != 0) return;
  if (linked && design_.aside_owes_nothing && flow.ledger.owes()) return;
  const bool has_records = state.near.known.has_any(client_of(flow));
  if (design_.aside_without_records && (has_records || (!linked && others_owe(state, number)))) {
    if (linked)
      near_ends(next, number, Rest::dropped);
    else
      next.flows[number].near = 0;
    return add(out, next,
               "the near daemon is short of memory and resets the connection, to tell its client later",
               number, 0, false);
  }
  if (design_.aside_owes_nothing && linked && others_owe(state, number)) return;
  Flow& aside = next.flows[number];
  aside.unread = 1;
  aside.ledger = {};
  if (linked) aside.to_far.push({.kind = Kind::aside});
  add(out, next, "the near daemon is short of memory and reads the connection no longer", number, 0, false);
}

// The server's answers pass unread from here on: what is owed cannot be settled.
void Writes::near_hears_aside(State& state, unsigned number) const {
  Flow& flow = state.flows[number];
  if (flow.ledger.owes() || flow.held != 0) return near_ends(state, number, Rest::dropped);
  flow.deaf = 1;
  flow.may_promise = 0;
}

}  // namespace longhaul::model
