// SPDX-License-Identifier: Apache-2.0
// Failures and repairs in the model of writes. Each failure happens once at most.
#include "tests/model/writes.h"

namespace longhaul::model {
namespace {

enum class Loss : std::uint8_t { killed, power };

void near_fails(WriteState& state, Loss loss) {
  state.near.up = 0;
  state.near.known = {};
  if (loss == Loss::power) state.near.unsynced = {};
  for (Flow& flow : state.flows) {
    if (flow.route != Route::linked && flow.route != Route::past_near) continue;
    flow.near = flow.may_promise = flow.settled = flow.aborted = 0;
    flow.renaming = flow.stops = flow.unread = flow.deaf = 0;
    flow.held = 0;
    flow.to_near = {};
    flow.ledger = {};
    if (flow.telling == 1) flow.telling = flow.proved = 0;
    if (loss == Loss::power) flow.to_client = 0;
  }
}

void far_fails(WriteState& state, Loss loss) {
  state.far.up = 0;
  state.far.known = {};
  if (loss == Loss::power) state.far.unsynced = {};
  for (Flow& flow : state.flows) {
    if (flow.route != Route::linked && flow.route != Route::through_far) continue;
    flow.far = flow.permit = flow.failed_at_far = flow.aborted = flow.far_unread = flow.far_aside = 0;
    flow.to_far = {};
    if (flow.route == Route::through_far) flow.held = flow.unread = 0;
    if (!flow.near) flow.renaming = 0;
    if (flow.telling == 2) flow.telling = flow.proved = 0;
  }
}

void server_ends(Flow& flow) {
  flow.server = flow.opened = flow.oplock = 0;
  flow.at_server = {};
}

// What was on the server is lost directly, too.
void server_loses_power(WriteState& state) {
  for (unsigned block = 0; block < kMostBlocks; ++block) {
    if (state.cache[block] == state.disk[block]) continue;
    state.cache[block] = state.disk[block];
    state.excused = static_cast<std::uint8_t>(state.excused | 1U << block);
  }
  for (Flow& flow : state.flows) server_ends(flow);
}

}  // namespace

void Writes::failure_steps(const State& state, Steps& out) const {
  const auto repair = [&](const State& next, const char* text) { add(out, next, text, kFlows, 0, false); };
  if (!state.near.up) {
    State next = state;
    restarted(next, next.near);
    repair(next, "the near daemon is started again");
  }
  if (!state.far.up) {
    State next = state;
    restarted(next, next.far);
    repair(next, "the far daemon is started again");
  }
  if (state.cut) {
    State next = state;
    next.cut = 0;
    repair(next, "the line is whole again");
  }
  if (state.full) {
    State next = state;
    next.full = 0;
    repair(next, "there is room on the server's disk again");
  }

  unsigned happened = 0;
  for (unsigned kind = 0; kind < kFailureKinds; ++kind) happened += state.failures >> kind & 1;
  if (happened >= bounds_.failures || state.stage == Stage::success || state.stage == Stage::failure) return;
  const auto fail = [&](Failure failure, const char* text, auto&& change, unsigned flow = kFlows) {
    if ((state.failures & only(failure)) || !(bounds_.kinds & only(failure))) return;
    State next = state;
    next.failures |= only(failure);
    change(next);
    add(out, next, text, flow, 0, false);
  };
  if (design_.pair && state.near.up) {
    fail(Failure::near_killed, "FAILURE: the near daemon is killed",
         [](State& next) { near_fails(next, Loss::killed); });
    fail(Failure::near_power, "FAILURE: the near host loses power",
         [](State& next) { near_fails(next, Loss::power); });
  }
  if (design_.pair && state.far.up) {
    fail(Failure::far_killed, "FAILURE: the far daemon is killed",
         [](State& next) { far_fails(next, Loss::killed); });
    fail(Failure::far_power, "FAILURE: the far host loses power",
         [](State& next) { far_fails(next, Loss::power); });
  }
  if (design_.pair && !state.cut)
    fail(Failure::line_cut, "FAILURE: the line is cut", [](State& next) { next.cut = 1; });
  fail(Failure::server_power, "FAILURE: the server loses power, and starts again", server_loses_power);
  fail(Failure::disk_full, "FAILURE: the server's disk is full", [](State& next) { next.full = 1; });
  for (unsigned i = 0; i < kFlows; ++i) {
    if (!state.flows[i].server) continue;
    fail(
        Failure::smbd_killed, "FAILURE: the server's process is killed",
        [i](State& next) { server_ends(next.flows[i]); }, i);
    fail(
        Failure::session_closed, "FAILURE: the server's administrator closes the session",
        [i](State& next) { next.flows[i].session_gone = 1; }, i);
  }
}

}  // namespace longhaul::model
