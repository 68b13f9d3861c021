// SPDX-License-Identifier: Apache-2.0
// See reads.h. One tick is the time within which a notification comes from the server to the near half. A
// direct READ gets what the server has; one through the pair may get what a program beside smbd replaced one
// tick before.
#include "tests/model/reads.h"

#include <algorithm>
#include <cassert>

namespace longhaul::model {
namespace {

using Way = std::array<Told, kReadQueue>;

bool empty(const Way& way) { return way[0].kind == Note::none; }

bool full(const Way& way) { return way[kReadQueue - 1].kind != Note::none; }

void push(Way& way, const Told& told) {
  const auto place =
      std::find_if(way.begin(), way.end(), [](const Told& each) { return each.kind == Note::none; });
  assert(place != way.end());
  *place = told;
}

Told pop(Way& way) {
  const Told first = way[0];
  std::move(way.begin() + 1, way.end(), way.begin());
  way[kReadQueue - 1] = {};
  return first;
}

void add(std::vector<ReadStep>& out, const ReadState& next, const char* text, unsigned version = 0) {
  out.push_back({.next = next, .text = text, .version = static_cast<std::uint8_t>(version)});
}

}  // namespace

std::string ReadStep::line() const {
  std::string line = text;
  if (const auto place = line.find('%'); place != std::string::npos)
    line.replace(place, 1, std::to_string(version));
  return line;
}

void Reads::steps(const ReadState& state, std::vector<Step>& out) const {
  client_steps(state, out);
  near_steps(state, out);
  far_steps(state, out);
  server_steps(state, out);
  time_steps(state, out);
}

void Reads::changed(ReadState& state) const {
  ++state.version;
  if (state.listening) state.notified = 1;
}

// A READ that the near half cannot answer gets what the server has: only the others can be stale.
void Reads::client_steps(const ReadState& state, Steps& out) const {
  ReadState next = state;
  if (state.cached && state.may_answer && state.near_silent < design_.near_silence &&
      (state.cached - 1 < state.oldest || state.owing)) {
    next.stale = 1;
    add(out, next, "the client's READ is answered with version %, at the near half", state.cached - 1U);
    next = state;
  }
  if (state.own_writes < bounds_.own_writes && !full(state.to_far)) {
    ++next.own_writes;
    ++next.owing;
    ++next.near_stamp;
    next.cached = 0;
    push(next.to_far, {.kind = Note::write, .near_stamp = next.near_stamp});
    add(out, next, "the client writes; the near half drops what it has and passes the WRITE on");
  }
}

void Reads::near_steps(const ReadState& state, Steps& out) const {
  if (state.cut || empty(state.to_near)) return;
  ReadState next = state;
  const Told told = pop(next.to_near);
  switch (told.kind) {
    case Note::ahead:
      if (design_.checks_stamps &&
          (told.near_stamp != state.near_stamp || told.far_stamp != state.far_stamp_seen))
        return add(out, next, "the near half gets version % and drops it: its stamps are old", told.version);
      if (state.may_answer) next.cached = static_cast<std::uint8_t>(told.version + 1);
      return add(out, next, "the near half gets version %", told.version);
    case Note::drop:
      next.far_stamp_seen = told.far_stamp;
      next.cached = 0;
      return add(out, next, "the near half learns that the file has changed, and drops what it has");
    default:
      if (full(state.to_far)) return;
      next.may_answer = 0;
      next.cached = 0;
      push(next.to_far, {.kind = Note::given_back});
      return add(out, next,
                 "the near half learns that the oplock is taken back, drops what it has, and says so");
  }
}

void Reads::far_steps(const ReadState& state, Steps& out) const {
  ReadState next = state;
  if (design_.watches && !state.asked_to_listen) {
    next.asked_to_listen = 1;
    next.listening = design_.listens_at_once;
    add(out, next, "the far half asks the server to notify it of changes");
    next = state;
  }
  if (state.asked_to_listen && !state.watching) {
    next.watching = 1;
    add(out, next, "the far half learns that the server listens");
    next = state;
  }
  const bool may_fetch = state.watching || !design_.watches || !design_.fetches_only_watched;
  const bool at_rest = !state.changing || !design_.pauses_for_changes;
  if (state.oplock && !state.taken_back && may_fetch && at_rest && !state.pushed &&
      state.fetch == Fetch::none) {
    next.fetch = Fetch::asked;
    next.fetch_near_stamp = state.near_stamp_seen;
    next.fetch_far_stamp = state.far_stamp;
    next.pushed = 1;
    add(out, next, "the far half asks the server for the file");
    next = state;
  }
  if (state.fetch == Fetch::read && !full(state.to_near)) {
    push(next.to_near, {Note::ahead, state.fetched, state.fetch_near_stamp, state.fetch_far_stamp});
    next.fetch = Fetch::none;
    next.fetched = next.fetch_near_stamp = next.fetch_far_stamp = 0;
    add(out, next, "the far half gets version % and pushes it to the near half", state.fetched);
    next = state;
  }
  if (state.notified && !full(state.to_near)) {
    next.notified = 0;
    ++next.far_stamp;
    next.pushed = 0;
    push(next.to_near, {.kind = Note::drop, .far_stamp = next.far_stamp});
    add(out, next, "the server's notification comes to the far half, which tells the near one");
    next = state;
  }
  if (state.wanted && state.oplock && !state.taken_back && !full(state.to_near)) {
    next.taken_back = 1;
    push(next.to_near, {.kind = Note::take_back});
    add(out, next, "the server takes the oplock back; the far half tells the near one");
    next = state;
  }
  if (state.taken_back && state.oplock && state.far_silent >= design_.far_silence) {
    next.oplock = 0;
    add(out, next, "the far half gives the oplock back without a word of the near one");
    next = state;
  }
  if (state.cut || empty(state.to_far)) return;
  const Told told = pop(next.to_far);
  if (told.kind == Note::given_back) {
    next.oplock = 0;
    return add(out, next, "the far half gives the oplock back");
  }
  next.near_stamp_seen = told.near_stamp;
  next.pushed = 0;
  ++next.changing;
  add(out, next, "the client's WRITE comes to the far half, which sends it to the server");
}

void Reads::server_steps(const ReadState& state, Steps& out) const {
  ReadState next = state;
  if (state.fetch == Fetch::asked) {
    next.fetch = Fetch::read;
    next.fetched = state.version;
    add(out, next, "the server reads version %", state.version);
    next = state;
  }
  if (state.changing) {
    --next.changing;
    --next.owing;
    changed(next);
    next.oldest = next.version;
    add(out, next, "the server does the client's WRITE: version %", next.version);
    next = state;
  }
  if (state.asked_to_listen && !state.listening) {
    next.listening = 1;
    add(out, next, "the server begins to listen for changes");
    next = state;
  }
  if (state.local_writes < bounds_.local_writes) {
    ++next.local_writes;
    next.unseen[state.version] = 1;
    changed(next);
    add(out, next, "a program on the server changes the file: version %", next.version);
    next = state;
  }
  if (state.smb_writes < bounds_.smb_writes && !state.wanted) {
    next.wanted = 1;
    add(out, next, "a second client opens the file to write");
    next = state;
  }
  if (state.wanted && !state.oplock && state.smb_writes < bounds_.smb_writes) {
    ++next.smb_writes;
    changed(next);
    next.oldest = next.version;
    add(out, next, "the second client writes: version %", next.version);
  }
}

// What is on its way within a tick arrives in it, unless the line is cut.
void Reads::time_steps(const ReadState& state, Steps& out) const {
  ReadState next = state;
  if (!state.notified && (state.cut || (empty(state.to_near) && empty(state.to_far)))) {
    for (unsigned version = 0; version < kMostVersions; ++version) {
      if (next.unseen[version] == 0 || ++next.unseen[version] <= 2) continue;
      next.unseen[version] = 0;
      next.oldest = std::max(next.oldest, static_cast<std::uint8_t>(version + 1));
    }
    constexpr std::uint8_t kLong = 4;
    next.near_silent = state.cut ? std::min<std::uint8_t>(kLong, state.near_silent + 1) : 0;
    next.far_silent = state.cut ? std::min<std::uint8_t>(kLong, state.far_silent + 1) : 0;
    add(out, next, "a tick passes");
    next = state;
  }
  if (!state.cut && state.cuts < bounds_.cuts) {
    ++next.cuts;
    next.cut = 1;
    add(out, next, "FAILURE: the line is cut");
    next = state;
  }
  if (state.cut) {
    next.cut = 0;
    add(out, next, "the line is whole again");
  }
}

}  // namespace longhaul::model
