// SPDX-License-Identifier: Apache-2.0
// The far half, and the guard of the far daemon for connections that reach its host past the near one, in the
// model of writes.
#include "tests/model/writes.h"

namespace longhaul::model {

void Writes::far_steps(const State& state, Steps& out) const {
  for (unsigned i = 0; i < kFlows; ++i) {
    const Flow& flow = state.flows[i];
    State next = state;
    if (flow.proved && flow.telling == 2 && state.far.up) {
      delivered(next, next.flows[i]);
      add(out, next, "the far daemon learns that the client has read the error, and forgets the loss", i);
      continue;
    }
    if (!flow.far) continue;
    if (flow.route == Route::through_far) {
      if (flow.held != 0) guard_opens(state, i, out);
      if (flow.client) continue;
      next.flows[i].far = 0;
      next.flows[i].held = 0;
      add(out, next, "the far daemon sees the client's end", i);
      continue;
    }
    if (!flow.to_far.empty() && !state.cut) far_takes(state, i, out);
    if (!flow.near && flow.orderly && !state.cut) {
      if (!flow.to_far.empty() || !flow.at_server.empty()) continue;
      next.flows[i].far = next.flows[i].permit = next.flows[i].failed_at_far = 0;
      next.flows[i].far_unread = next.flows[i].far_aside = next.flows[i].renaming = 0;
      unmark(next.far, i);
      add(out, next, "the far half ends what the near one has ended", i);
    } else if (!flow.near || state.cut) {
      session_ends(next, flow.number);
      add(out, next,
          state.cut ? "the far half has heard nothing for a minute, and ends the server's connection"
                    : "the far half finds the near one gone, and ends the server's connection",
          i);
    } else if (!flow.server && !flow.aborted) {
      next.flows[i].aborted = 1;
      const bool may_owe = flow.permit || (design_.records_failures && flow.failed_at_far);
      if (design_.keeps_aborted) {
        if (may_owe && design_.far_remembers) add_record(next, next.far, next.flows[i]);
      } else {
        next.flows[i].far = next.flows[i].permit = next.flows[i].failed_at_far = 0;
        unmark(next.far, i);
      }
      add(out, next, "the far half finds the server's connection gone, and says so", i);
    }
  }
}

void Writes::far_takes(const State& state, unsigned number, Steps& out) const {
  State next = state;
  Flow& flow = next.flows[number];
  const Message request = unpack(flow.to_far.at[0]);
  const bool waits = (request.kind == Kind::close && design_.close_waits) || request.kind == Kind::flush ||
                     request.kind == Kind::rename || request.kind == Kind::stream;
  const bool opening = unpack(flow.at_server.at[0]).opens();
  if (opening || (waits && !flow.at_server.empty())) return;
  flow.to_far.erase(0);
  if (request.kind == Kind::settled) {
    flow.permit = flow.failed_at_far = 0;
    unmark(next.far, number);
    return add(out, next, "the far half hears that nothing is promised any more", number);
  }
  if (request.kind == Kind::aside) {
    // All promises precede it.
    flow.permit = flow.failed_at_far = 0;
    flow.far_unread = 1;
    return add(out, next, "the far half hears that the near one reads nothing any more", number);
  }
  if (request.kind == Kind::write && flow.opened && flow.held_at_far && !flow.far_unread &&
      (!flow.far_aside || request.promised)) {
    flow.permit = 1;
    mark(next.far, number, flow.number, flow.far_name);
  }
  if ((request.opens() || request.kind == Kind::rename) && !flow.far_unread) {
    const std::uint8_t name = request.opens() ? request.name : flow.far_name;
    if (request.opens()) end_orphans(next, number);
    note_deliveries(next, 2);
    if (design_.near_knows_better && !request.looks) {
      next.far.known.known_to(flow.number, client_of(flow), name);
      // The near daemon has read the marks of the one before it.
      if (design_.marks_files && flow.number > 1)
        next.far.known.known_to(static_cast<std::uint8_t>(flow.number - 1), client_of(flow), name);
      forget_mark(next.far);
    }
    if (tells(next.far, flow, request, name)) {
      if (is_sealed(flow)) {
        tell_by_reset(next.far, flow, name);
        flow.permit = flow.failed_at_far = 0;
        far_ends(next, number);
        return add(out, next, "the far half remembers the loss, cannot answer %m, and resets the connection",
                   number, pack(request));
      }
      Message answer = request;
      answer.answer = Answer::lost;
      flow.to_near.push(answer);
      flow.telling = 2;
      flow.telling_name = name;
      if (!design_.keeps_until_delivered) remove_record(next.far, flow, name, Why::told);
      return add(out, next, "the far half remembers the loss and answers %m with LOST_WRITEBEHIND_DATA",
                 number, pack(request));
    }
    if (!design_.keeps_until_delivered && request.kind == Kind::open_anew)
      remove_record(next.far, flow, name, Why::replaced);
  }
  if (flow.server) flow.at_server.push(request);
  add(out, next, "%m comes to the far half, which sends it to the server", number, pack(request));
}

void Writes::guard_opens(const State& state, unsigned number, Steps& out) const {
  State next = state;
  Flow& flow = next.flows[number];
  const Message open = unpack(flow.held);
  flow.held = 0;
  const std::uint8_t name = open.opens() ? open.name : flow.far_name;
  if (design_.guards_bypassing) {
    if (open.opens()) end_orphans(next, number);
    note_deliveries(next, 2);
    if (tells(next.far, flow, open, name)) {
      if (is_sealed(flow)) {
        tell_by_reset(next.far, flow, name);
        flow.far = 0;
        return add(out, next,
                   "the far daemon remembers the loss, cannot answer %m, and resets the connection", number,
                   pack(open));
      }
      Message answer = open;
      answer.answer = Answer::lost;
      flow.to_client = pack(answer);
      flow.telling = 2;
      flow.telling_name = name;
      if (!design_.keeps_until_delivered) remove_record(next.far, flow, name, Why::told);
      return add(out, next, "the far daemon remembers the loss and answers %m with LOST_WRITEBEHIND_DATA",
                 number, pack(open));
    }
    if (!design_.keeps_until_delivered && open.kind == Kind::open_anew)
      remove_record(next.far, flow, name, Why::replaced);
    if (open.opens()) flow.tracks = has_record(next.far, flow, name);
  }
  flow.far_name = name;
  if (flow.server) flow.at_server.push(open);
  add(out, next, "the far daemon relays %m to the server", number, pack(open));
}

// Of an earlier run of the near daemon, or of one that the client comes past: that may not be known otherwise
// yet, since a session of the link outlives its daemon by a minute.
void Writes::end_orphans(State& state, unsigned number) const {
  if (!design_.ends_orphans) return;
  const Flow& asking = state.flows[number];
  for (unsigned k = 0; k < kFlows; ++k) {
    const Flow& old = state.flows[k];
    if (k == number || old.route != Route::linked || !old.far || old.near || old.orderly) continue;
    if (asking.route == Route::through_far || old.number != asking.number) far_ends(state, k);
  }
}

// Of the link: all that crossed it ends at once, and what was on its way is dropped.
void Writes::session_ends(State& state, std::uint8_t near_run) const {
  for (unsigned k = 0; k < kFlows; ++k) {
    Flow& flow = state.flows[k];
    if (flow.route != Route::linked || !flow.far || flow.number != near_run) continue;
    if (flow.near && !state.cut) continue;  // crosses a later one
    if (flow.orderly) flow.permit = flow.failed_at_far = 0;
    far_ends(state, k);
  }
}

// Without a word of the near half: on whatever may have been promised something, it may have been.
void Writes::far_ends(State& state, unsigned number) const {
  Flow& flow = state.flows[number];
  const bool may_owe = flow.permit || (design_.records_failures && flow.failed_at_far);
  if (may_owe && design_.far_remembers) add_record(state, state.far, flow);
  flow.far = flow.permit = flow.failed_at_far = flow.aborted = flow.far_unread = flow.far_aside = 0;
  flow.to_far = {};
  unmark(state.far, number);
}

}  // namespace longhaul::model
