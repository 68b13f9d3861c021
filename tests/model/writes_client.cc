// SPDX-License-Identifier: Apache-2.0
// The program and its library, in the model of writes. One request at a time: early answers alone put several
// on their way.
#include "tests/model/writes.h"

namespace longhaul::model {
namespace {

bool is_broken(const Flow& flow) {
  switch (flow.route) {
    case Route::linked:
      return !flow.near;
    case Route::past_near:
      return !flow.near || !flow.server;
    case Route::through_far:
      return !flow.far || !flow.server;
    default:
      return !flow.server;
  }
}

// The client's patience ends: what it waits for does not come soon.
bool is_stuck(const WriteState& state, const Flow& flow) {
  if (flow.route != Route::linked) return false;
  return state.cut || !flow.far || !flow.server;
}

Route route_now(const Design& design, const WriteState& state) {
  if (!design.pair) return Route::plain;
  if (state.near.up) return state.far.up && !state.cut ? Route::linked : Route::past_near;
  return state.far.up ? Route::through_far : Route::plain;
}

}  // namespace

// Of the program's requests on the open file: WRITEs, with a rename or the like somewhere, FLUSH, CLOSE.
Kind Writes::kind_at(unsigned place) const {
  const unsigned extras = bounds_.extra == Extra::none ? 0 : 1;
  if (extras != 0 && place == bounds_.extra_at)
    return bounds_.extra == Extra::renames ? Kind::rename : Kind::stream;
  if (place < bounds_.blocks + extras) return Kind::write;
  return place == bounds_.blocks + extras && bounds_.flushes ? Kind::flush : Kind::close;
}

bool Writes::at_close(const State& state) const {
  return state.has_handle && kind_at(state.place) == Kind::close;
}

Message Writes::next_request(const State& state) const {
  const Kind kind = kind_at(state.place);
  if (kind == Kind::stream) return {.kind = kind};
  if (!state.has_handle) {
    // Where the fate of its RENAME is not known the program looks which name the file has. It opens the file
    // for the rename alone where nothing else is left, and that was never asked for.
    const bool looks = kind == Kind::rename && kind_at(state.place + 1U) == Kind::close && state.renamed == 0;
    return {.kind = state.edition == 2 && state.place == 0 ? Kind::open_anew : Kind::open,
            .name = state.renamed == 1 ? state.name : static_cast<std::uint8_t>(state.renamed == 2),
            .looks = looks};
  }
  if (kind != Kind::write) return {.kind = kind};
  const bool is_behind = bounds_.extra != Extra::none && state.place > bounds_.extra_at;
  return {.kind = kind,
          .block = static_cast<std::uint8_t>(state.place - (is_behind ? 1 : 0)),
          .edition = state.edition};
}

// The client's other connection, which is there already.
void Writes::goes_to_spare(State& state) const {
  if (!bounds_.spare) return;
  const std::uint8_t other = state.current == 0 ? 1 : 0;
  if (!state.flows[other].client) return;
  state.current = other;
  state.stage = Stage::idle;
}

void Writes::client_steps(const State& state, Steps& out) const {
  State next = state;
  Flow& flow = next.flows[state.current];
  switch (state.stage) {
    case Stage::connecting: {
      if (state.logins > bounds_.logins) {
        next.stage = Stage::failure;
        return add(out, next, "the program gives up");
      }
      for (unsigned i = 0; i < kFlows; ++i) {
        if (state.flows[i].route != Route::none) continue;
        const Route route = route_now(design_, state);
        if (design_.pair && route == Route::plain && !bounds_.fails_open) {
          next.stage = Stage::failure;
          return add(out, next, "the client reaches neither daemon, because both are down, and gives up");
        }
        next.flows[i] = {
            .route = route, .client = 1, .server = 1, .guid = state.logins, .number = state.near.number};
        next.flows[i].near = route == Route::linked || route == Route::past_near;
        next.flows[i].far = route == Route::linked || route == Route::through_far;
        next.current = static_cast<std::uint8_t>(i);
        if (bounds_.spare && state.logins == 0) next.flows[i == 0 ? 1 : 0] = next.flows[i];
        next.stage = Stage::idle;
        next.has_handle = 0;
        static const char* const texts[] = {
            "", "the client connects and logs in, over the link",
            "the client connects and logs in; the near daemon bypasses the link",
            "the client connects and logs in past the near daemon, which is down",
            "the client connects and logs in"};
        return add(out, next, texts[static_cast<unsigned>(route)], i);
      }
      return;
    }
    case Stage::idle:
      if (is_broken(flow)) {
        connection_lost(next);
        return add(out, next, "the client finds its connection reset", state.current);
      }
      {
        const Message request = next_request(state);
        next.stage = Stage::waiting;
        send(next, request);
        const bool early = state.flows[state.current].route == Route::linked && flow.to_client != 0;
        return add(out, next,
                   early ? "the program asks %m; the near half answers success early" : "the program asks %m",
                   state.current, pack(request));
      }
    case Stage::waiting:
      if (flow.to_client != 0) {
        read(next);
        add(out, next, "the client reads the answer to %m: %s", state.current,
            flow.to_client ? 0 : state.flows[state.current].to_client);
      }
      if (is_broken(flow) || is_stuck(state, flow)) {
        next = state;
        connection_lost(next);
        add(out, next,
            is_broken(state.flows[state.current]) ? "the client finds its connection reset"
                                                  : "the client waits no longer and ends its connection",
            state.current);
      }
      return;
    case Stage::success:
    case Stage::failure:
      return;
  }
}

void Writes::send(State& state, const Message& request) const {
  Flow& flow = state.flows[state.current];
  if (flow.route == Route::plain) return flow.at_server.push(request);
  if (request.kind == Kind::rename) state.renamed = 1;
  if ((request.opens() || request.kind == Kind::rename) && !flow.unread) {
    flow.held = pack(request);
    return;
  }
  if (flow.route != Route::linked) return flow.at_server.push(request);
  Message passed = request;
  const bool early =
      (request.kind == Kind::write && is_early(state, request) && flow.ledger.promise(request.write())) ||
      (request.kind == Kind::flush && !design_.flush_waits && !flow.unread) ||
      (request.kind == Kind::close && !design_.close_waits && !flow.unread);
  if (early) {
    passed.promised = 1;
    flow.to_client = pack(request);
  }
  if (request.kind == Kind::close && early) flow.may_promise = 0;
  flow.to_far.push(passed);
}

bool Writes::is_early(const State& state, const Message& request) const {
  const Flow& flow = state.flows[state.current];
  return request.kind == Kind::write && flow.may_promise && !flow.unread &&
         !(flow.settled && design_.asks_after_settled) && !(has_unread(state) && design_.counts_unread) &&
         !(near_is_renaming(state) && design_.waits_for_renames);
}

void Writes::read(State& state) const {
  Flow& flow = state.flows[state.current];
  const Message answer = unpack(flow.to_client);
  flow.to_client = 0;
  switch (answer.answer) {
    case Answer::success:
      break;
    case Answer::session_deleted:
      return connection_lost(state);
    case Answer::not_found:  // its RENAME of an old connection was done meanwhile
      state.stage = Stage::idle;
      return;
    case Answer::lost:
      ++state.told;
      [[fallthrough]];
    case Answer::disk_full:
      if (state.failures == 0 && !state.was_short) state.false_alarm = 1;
      if (flow.telling) flow.proved = 1;
      return told_error(state, answer);
  }
  state.stage = Stage::idle;
  if (answer.opens()) {
    state.has_handle = 1;
    if (answer.name == 1 && kind_at(state.place) == Kind::rename) ++state.place;
    if (answer.name == 1) state.renamed = 2;
    return;
  }
  if (answer.kind == Kind::rename) state.renamed = 2;
  if (answer.kind == Kind::write) state.acked[answer.block] = answer.edition;
  if (answer.kind == Kind::flush && !state.knows) {
    for (unsigned block = 0; block < bounds_.blocks; ++block)
      if (state.acked[block] != state.disk[block] && !(state.excused >> block & 1)) state.flush_broken = 1;
  }
  ++state.place;
  if (answer.kind != Kind::close) return;
  state.stage = Stage::success;
  flow.client = 0;
}

void Writes::connection_lost(State& state) const {
  Flow& flow = state.flows[state.current];
  const bool asked = state.stage == Stage::waiting;
  if (flow.telling == 3) ++state.told;
  flow.client = 0;
  flow.to_client = 0;
  state.stage = Stage::failure;
  if (bounds_.policy == Policy::stops || bounds_.policy == Policy::overlooks_close) return;
  if (bounds_.policy == Policy::reopens_idle && asked) return;
  if (bounds_.policy == Policy::starts_over) return told_error(state, {});
  if (at_close(state) && bounds_.policy == Policy::ignores_close) {
    state.stage = Stage::success;
    return;
  }
  if (at_close(state) && bounds_.policy == Policy::reconnects) {
    if (!asked) state.stage = Stage::success;  // there is no handle to close any more
    return;
  }
  state.stage = Stage::connecting;
  state.has_handle = 0;
  ++state.logins;
  goes_to_spare(state);
}

void Writes::told_error(State& state, const Message& answer) const {
  Flow& flow = state.flows[state.current];
  const bool ignores = bounds_.policy == Policy::ignores_close || bounds_.policy == Policy::overlooks_close;
  if (ignores && answer.kind == Kind::close) {
    state.stage = Stage::success;
    flow.client = 0;
    return;
  }
  if (bounds_.policy == Policy::waits_for_space && answer.answer == Answer::disk_full) {
    state.stage = Stage::idle;
    return;
  }
  flow.client = 0;
  flow.to_client = 0;
  state.stage = Stage::failure;
  if (bounds_.policy == Policy::insists) {
    state.knows = 1;
  } else if (bounds_.policy == Policy::starts_over && state.edition == 1) {
    state.edition = 2;
    state.place = 0;
    state.acked = {};
  } else {
    return;
  }
  state.stage = Stage::connecting;
  state.has_handle = 0;
  ++state.logins;
  goes_to_spare(state);
}

}  // namespace longhaul::model
