// SPDX-License-Identifier: Apache-2.0
// Programs that rename the file or use its named streams, connections that nobody but the client and the
// server can change, and daemons that are short of memory.
#include "tests/model/case_parts.h"

namespace longhaul::model {
namespace {

constexpr struct {
  Policy policy;
  const char* name;
} kPrograms[] = {
    {Policy::continues, "logs in again and continues"},
    {Policy::reopens_idle, "opens a connection again that was lost between requests"},
    {Policy::stops, "stops at an error"},
    {Policy::overlooks_close, "overlooks the status of CLOSE"},
    {Policy::waits_for_space, "waits for space and repeats the WRITE"},
    {Policy::insists, "goes on after a late error"},
};

Bounds with(Bounds bounds, Extra extra, unsigned extra_at) {
  bounds.extra = extra;
  bounds.extra_at = extra_at;
  return bounds;
}
Bounds sealed(Bounds bounds, Seal seal) {
  bounds.seal = seal;
  return bounds;
}
Bounds short_of(Bounds bounds, Short memory) {
  bounds.memory = memory;
  return bounds;
}
Bounds with_spare(Bounds bounds) {
  bounds.spare = true;
  return bounds;
}

void add_renames(std::vector<Case>& cases, Extent extent) {
  for (const auto& [policy, name] : kPrograms) {
    if (extent == Extent::small && policy != Policy::continues) continue;
    for (const unsigned place : {1U, 2U}) {
      const std::string program = std::string("a program that ") + name + " and renames the file " +
                                  (place == 1 ? "between two blocks" : "when it is written");
      const Bounds bounds = with({.policy = policy, .flushes = false, .failures = 1}, Extra::renames, place);
      Bounds twice = bounds;
      twice.failures = 2;
      cases.push_back(make(program + ", directly: two failures", nullptr, {.pair = false}, twice));
      cases.push_back(make(program + ": any one failure", nullptr, {}, bounds));
    }
  }
  cases.push_back(make("a rename is not told of a loss", kMissing, {.tells_renames = false},
                       with(one(Failure::smbd_killed), Extra::renames, 2)));
  cases.push_back(make("open files keep their old name when they are renamed", kMissing,
                       {.names_follow = false}, with(one(Failure::smbd_killed), Extra::renames, 1)));
  cases.push_back(make("a mark stays under the old name", kMissing, {.records_follow = false},
                       with(one(Failure::near_killed), Extra::renames, 1)));
  for (const Failure failure : {Failure::near_killed, Failure::far_killed}) {
    const Bounds bounds = with(two(Failure::disk_full | failure), Extra::renames, 1);
    const std::string sentence =
        std::string("limit: a promise is refused, the rename behind it is done, and the ") +
        (failure == Failure::near_killed ? "near" : "far") + " daemon is killed before the near half knows";
    cases.push_back(make(sentence, kMissing, kEverything, bounds));
  }
}

void add_streams(std::vector<Case>& cases) {
  const Bounds any{.flushes = false, .failures = 1};
  cases.push_back(make("a program that empties a stream of the file between two blocks: any one failure",
                       nullptr, {}, with(any, Extra::empties_stream, 1)));
  cases.push_back(make("emptying a stream ends the record of the file", kMissing,
                       {.streams_are_apart = false},
                       with(one(Failure::smbd_killed), Extra::empties_stream, 1)));
  Bounds in_stream = any;
  in_stream.in_stream = true;
  cases.push_back(make("a program that writes a stream: any one failure", nullptr, {}, in_stream));
  in_stream.kinds = only(Failure::smbd_killed);
  cases.push_back(make("promises through a stream", kMissing, {.not_through_streams = false}, in_stream));
}

void add_sealed(std::vector<Case>& cases, Extent extent) {
  for (const auto& [policy, name] : kPrograms) {
    if (extent == Extent::small && policy != Policy::reopens_idle && policy != Policy::continues) continue;
    const std::string program = std::string("a program that ") + name;
    const Bounds any{.policy = policy, .flushes = false, .failures = 1};
    Bounds encrypted = sealed(any, Seal::keys);
    encrypted.encrypted = true;
    cases.push_back(make(program + ", signed: any one failure", nullptr, {}, sealed(any, Seal::keys)));
    cases.push_back(make(program + ", encrypted: any one failure", nullptr, {}, encrypted));
    cases.push_back(make(program + ", signed, with other keys in later logins: any one failure", nullptr, {},
                         sealed(any, Seal::first_key)));
  }
  const Policy reopens = Policy::reopens_idle;
  cases.push_back(make("the near daemon's guard passes what it cannot answer", kMissing,
                       {.resets_sealed = false}, sealed(one(Failure::far_killed, reopens), Seal::keys)));
  cases.push_back(make("the far daemon's guard passes what it cannot answer", kMissing,
                       {.resets_sealed = false}, sealed(one(Failure::near_killed, reopens), Seal::keys)));
  cases.push_back(make("the near half leaves connections that it cannot answer", kMissing,
                       {.stays_where_sealed = false},
                       sealed(one(Failure::smbd_killed, reopens), Seal::first_key)));
  cases.push_back(make("one reset ends the record of a signed program that logs in again", kMissing,
                       {.reset_ends_record = true}, sealed(one(Failure::far_killed), Seal::keys)));
}

void add_memory(std::vector<Case>& cases, Extent extent) {
  for (const auto& [policy, name] : kPrograms) {
    if (extent == Extent::small && policy != Policy::continues) continue;
    const std::string program = std::string("a program that ") + name;
    const bool is_longer = extent == Extent::large && policy == Policy::continues;
    const Bounds any{.policy = policy, .flushes = false, .blocks = is_longer ? 2U : 1U, .failures = 1};
    cases.push_back(make(program + "; the near daemon is short of memory: any one failure", nullptr, {},
                         short_of(any, Short::near)));
    if (extent == Extent::small) continue;
    const bool is_too_large = policy == Policy::insists;  // at the far half: more than 40 million states
    cases.push_back(
        make(program + " on a second connection; the near daemon is short of memory: any one failure",
             nullptr, {}, with_spare(short_of(any, Short::near))));
    if (is_too_large) continue;
    cases.push_back(make(
        program + "; the far daemon is short of memory, stays in doubt and shares records: any one failure",
        nullptr, {.shares_records = true}, short_of(any, Short::far)));
  }
  cases.push_back(make("the near half steps aside while it owes something", kMissing,
                       {.aside_owes_nothing = false}, short_of(one(Failure::disk_full), Short::near)));
  cases.push_back(make("the near half steps aside though its client has something to be told", kMissing,
                       {.aside_without_records = false}, short_of(one(Failure::smbd_killed), Short::near)));
  cases.push_back(make("promises while another connection of the client is not read", kMissing,
                       {.counts_unread = false},
                       with_spare(short_of(one(Failure::smbd_killed), Short::near))));
  cases.push_back(
      make("limit: the far half steps aside while a promise is on its way, and the near daemon is killed",
           kMissing, {}, short_of(one(Failure::near_killed), Short::far)));
}

}  // namespace

std::vector<Case> further_cases(Extent extent) {
  std::vector<Case> cases;
  add_renames(cases, extent);
  add_streams(cases);
  add_sealed(cases, extent);
  add_memory(cases, extent);
  return cases;
}

}  // namespace longhaul::model
