// SPDX-License-Identifier: Apache-2.0
// The daemons' records of lost writes, in the model of writes.
#include "tests/model/writes.h"

namespace longhaul::model {

namespace {

bool in_touch(const WriteState& state) { return state.near.up && state.far.up && !state.cut; }

}  // namespace

void Writes::add_record(State& state, Memory& memory, Flow& flow) const {
  const std::uint8_t name = &memory == &state.far ? flow.far_name : flow.near_name;
  if (!flow.counted) {
    flow.counted = 1;
    ++state.losses;
  }
  for (Memory* each : {&state.near, &state.far}) {
    if (each != &memory && !(design_.shares_records && in_touch(state))) continue;
    const bool suspects = each == &state.far && &memory == each;
    each->known.add(client_of(flow), suspects ? flow.number : std::uint8_t{0}, name);
    if (each->marks >> (&flow - state.flows.data()) & 1)
      each->marks = static_cast<std::uint8_t>(each->marks | 1U << (kBacksShift + name));
    if (design_.writes_records_at_once) write(*each);
  }
}

void Writes::write(Memory& memory) const {
  (design_.syncs_records ? memory.synced : memory.unsynced) = memory.known;
  if (memory.known == Book{}) memory.synced = memory.unsynced = {};
}

// A thread of each daemon brings to the disk what it knows.
void Writes::write_steps(const State& state, Steps& out) const {
  for (Memory State::*const which : {&State::near, &State::far}) {
    State next = state;
    Memory& memory = next.*which;
    write(memory);
    const Memory& before = state.*which;
    if (!before.up || (memory.synced == before.synced && memory.unsynced == before.unsynced)) continue;
    add(out, next,
        which == &State::near ? "the near daemon's records are on its disk"
                              : "the far daemon's records are on its disk");
  }
}

// Nothing is known by the name of a stream.
bool Writes::has_record(const Memory& memory, const Flow& flow, std::uint8_t name) const {
  return !bounds_.in_stream && memory.known.has(client_of(flow), name);
}

std::uint8_t Writes::client_of(const Flow& flow) const {
  return design_.recognises_addresses ? 1 : static_cast<std::uint8_t>(1 + flow.guid);
}

void Writes::remove_record(Memory& memory, const Flow& flow, std::uint8_t name, Why why) const {
  if (why == Why::told)
    memory.known.told(client_of(flow), name);
  else
    memory.known.replaced(client_of(flow), name);
  forget_mark(memory);
  if (design_.writes_records_at_once) write(memory);
}

// The client has read the report: the half that kept the record may forget it.
void Writes::delivered(State& state, Flow& flow) const {
  for (const unsigned half : {1U, 2U})
    if (flow.telling == half || (design_.shares_records && in_touch(state)))
      remove_record(half == 1 ? state.near : state.far, flow, flow.telling_name, Why::told);
  flow.failed_at_far = 0;
  flow.telling = flow.proved = 0;
}

// What the client has read before it asks again is known by then: a connection's end comes before the next
// one's OPEN.
void Writes::note_deliveries(State& state, unsigned half) const {
  for (Flow& flow : state.flows)
    if (flow.proved && flow.telling == half) delivered(state, flow);
}

// The file has its second name in this daemon from now on.
void Writes::renamed(State& state, Memory& memory) const {
  const bool is_far = &memory == &state.far;
  for (unsigned i = 0; i < kFlows; ++i) {
    Flow& flow = state.flows[i];
    if (design_.names_follow && (is_far ? flow.far : flow.near))
      (is_far ? flow.far_name : flow.near_name) = 1;
    if (design_.records_follow && memory.marks >> i & 1)
      memory.marks = static_cast<std::uint8_t>(memory.marks | 1U << (kNameShift + i));
  }
  if (!design_.records_follow) return;
  memory.known.moved(client_of(state.flows[state.current]));
  const unsigned first = 1U << kBacksShift, second = first << 1;
  if (memory.marks & first) memory.marks = static_cast<std::uint8_t>((memory.marks & ~first) | second);
  if (design_.writes_records_at_once) write(memory);
}

void Writes::mark(Memory& memory, unsigned number, std::uint8_t run, std::uint8_t name) const {
  if (!design_.marks_files) return;
  unmark(memory, number);
  memory.marks =
      static_cast<std::uint8_t>(memory.marks | 1U << number | unsigned{name} << (kNameShift + number));
  memory.marked_run = run;
}

void Writes::unmark(Memory& memory, unsigned number) {
  memory.marks = static_cast<std::uint8_t>(memory.marks & ~(1U << number | 1U << (kNameShift + number)));
}

bool Writes::is_marked(const Memory& memory, std::uint8_t name) {
  for (unsigned i = 0; i < kFlows; ++i)
    if ((memory.marks >> i & 1) && (memory.marks >> (kNameShift + i) & 1) == name) return true;
  return memory.marks >> (kBacksShift + name) & 1;
}

// The record that it backed is gone.
void Writes::forget_mark(Memory& memory) {
  for (unsigned name = 0; name < kNames; ++name)
    if (memory.known.client[name] == 0)
      memory.marks = static_cast<std::uint8_t>(memory.marks & ~(1U << (kBacksShift + name)));
}

// A mark tells that promises were outstanding, or may have been. It stays until the client was told.
void Writes::restarted(State& state, Memory& memory) const {
  memory.up = 1;
  ++memory.number;
  memory.known = memory.synced == Book{} ? memory.unsynced : memory.synced;
  if (memory.marks == 0) return;
  const bool is_far = &memory == &state.far;
  unsigned backs = 0;
  for (std::uint8_t name = 0; name < kNames; ++name) {
    if (!is_marked(memory, name)) continue;
    backs |= 1U << (kBacksShift + name);
    if (memory.known.client[name] == 0)
      memory.known.add(1, is_far ? memory.marked_run : std::uint8_t{0}, name);
  }
  for (unsigned i = 0; i < kFlows; ++i) {
    Flow& flow = state.flows[i];
    const bool is_left = memory.marks >> i & 1;
    const bool is_known = is_far && flow.number == memory.marked_run && flow.counted;
    // A near daemon does not know what the far one tells past it: each of the two may tell.
    if (is_left && !is_known) ++state.losses;
    if (is_left && is_far && flow.number == memory.marked_run) flow.counted = 1;
  }
  memory.marks = static_cast<std::uint8_t>(backs);
}

}  // namespace longhaul::model
