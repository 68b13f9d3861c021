// SPDX-License-Identifier: Apache-2.0
// See writes.h: messages, what is forbidden, and the text of steps.
#include "tests/model/writes.h"

#include <cassert>

namespace longhaul::model {

Packed pack(const Message& message) {
  return static_cast<Packed>(static_cast<unsigned>(message.kind) | message.block << 4 | message.edition << 6 |
                             message.promised << 8 | static_cast<unsigned>(message.answer) << 9 |
                             message.name << 12 | message.looks << 13);
}

Message unpack(Packed packed) {
  return {.kind = static_cast<Kind>(packed & 15),
          .block = static_cast<std::uint8_t>(packed >> 4 & 3),
          .edition = static_cast<std::uint8_t>(packed >> 6 & 3),
          .promised = static_cast<std::uint8_t>(packed >> 8 & 1),
          .answer = static_cast<Answer>(packed >> 9 & 7),
          .name = static_cast<std::uint8_t>(packed >> 12 & 1),
          .looks = static_cast<std::uint8_t>(packed >> 13 & 1)};
}

void Queue::push(const Message& message) {
  unsigned place = 0;
  while (place < kQueue && at[place] != 0) ++place;
  assert(place < kQueue);
  at[place] = pack(message);
}

void Queue::erase(unsigned place) {
  for (; place + 1 < kQueue; ++place) at[place] = at[place + 1];
  at[kQueue - 1] = 0;
}

void Writes::steps(const WriteState& state, std::vector<Step>& out) const {
  client_steps(state, out);
  near_steps(state, out);
  far_steps(state, out);
  server_steps(state, out);
  write_steps(state, out);
  failure_steps(state, out);
  memory_steps(state, out);
}

// What is left of a connection when all its ends are gone is nothing.
void Writes::add(Steps& out, const WriteState& next, const char* text, unsigned flow, Packed message,
                 bool moves) {
  out.push_back({.next = next,
                 .text = text,
                 .flow = static_cast<std::uint8_t>(flow),
                 .message = message,
                 .moves = moves});
  for (Flow& each : out.back().next.flows)
    if (!each.client && !each.near && !each.far && !each.server) each = Flow{};
}

const char* Writes::forbidden(const WriteState& state) const {
  if (state.false_alarm) return "an error was told though nothing had failed";
  if (state.flush_broken)
    return "FLUSH was answered before what was written before it was on the server's disk";
  if (bounds_.told_once && state.told > state.losses) return "one loss was told twice";
  return nullptr;
}

const char* Writes::forbidden_end(const WriteState& state) const {
  if (state.stage != Stage::success && state.stage != Stage::failure) return "the program can never end";
  if (state.stage == Stage::failure || state.knows) return nullptr;
  for (unsigned block = 0; block < bounds_.blocks; ++block) {
    if (state.acked[block] != 0 && state.cache[block] != state.acked[block] && !(state.excused >> block & 1))
      return "an acknowledged block is missing, and the program ended in success";
  }
  return nullptr;
}

std::string WriteStep::line() const {
  static const char* const kinds[] = {"",
                                      "OPEN",
                                      "OPEN (emptying the file)",
                                      "WRITE of block ",
                                      "FLUSH",
                                      "CLOSE",
                                      "Settled",
                                      "RENAME",
                                      "OPEN and CLOSE of a stream, which this empties",
                                      "Aside"};
  static const char* const answers[] = {"success", "DISK_FULL", "LOST_WRITEBEHIND_DATA",
                                        "USER_SESSION_DELETED", "OBJECT_NAME_NOT_FOUND"};
  std::string line;
  if (flow < kFlows) line += "connection " + std::to_string(flow + 1) + ": ";
  for (const char* c = text; *c != 0; ++c) {
    const Message about = unpack(message);
    if (*c != '%') {
      line += *c;
    } else if (*++c == 'm') {
      line += kinds[static_cast<unsigned>(about.kind)];
      if (about.opens() && about.looks) line += " for a rename";
      if (about.opens() && about.name) line += " by the new name";
      if (about.kind == Kind::write)
        line += std::to_string(about.block) + (about.edition == 2 ? " (new content)" : "");
    } else {
      line += answers[static_cast<unsigned>(about.answer)];
    }
  }
  return line;
}

}  // namespace longhaul::model
