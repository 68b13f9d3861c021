// SPDX-License-Identifier: Apache-2.0
#include "tests/model/case_parts.h"

namespace longhaul::model {
namespace {

constexpr struct {
  Policy policy;
  const char* name;
} kPolicies[] = {
    {Policy::stops, "stops at an error"},
    {Policy::continues, "logs in again and continues"},
    {Policy::reconnects, "has a library that reconnects by itself"},
    {Policy::ignores_close, "has a client that ignores the answer of CLOSE"},
    {Policy::overlooks_close, "overlooks the status of CLOSE"},
    {Policy::waits_for_space, "waits for space and repeats the WRITE"},
    {Policy::starts_over, "starts over"},
    {Policy::insists, "goes on after a late error"},
};

// The four breaks that were seen with real clients: the fourth is the reads' (read_cases.cc).
void add_known_breaks(std::vector<Case>& cases) {
  cases.push_back(make("records name the GUID of a login; smbd is killed", kMissing,
                       {.recognises_addresses = false}, one(Failure::smbd_killed)));
  cases.push_back(make("records name the GUID of a login; the far daemon is killed", kMissing,
                       {.recognises_addresses = false}, one(Failure::far_killed)));
  cases.push_back(make("connections that bypass the link are not asked about records", kMissing,
                       {.guards_bypassing = false}, one(Failure::far_killed)));
  for (const Policy policy : {Policy::reconnects, Policy::ignores_close})
    for (const Failure failure : {Failure::near_killed, Failure::far_killed})
      cases.push_back(
          make(std::string("promises to a client that ") +
                   (policy == Policy::reconnects ? "reconnects by itself" : "ignores the answer of CLOSE") +
                   (failure == Failure::near_killed ? "; near daemon killed" : "; far daemon killed"),
               kMissing, {.only_to_clients_that_report = false}, one(failure, policy)));
  cases.push_back(make("the far half keeps no records; the near daemon is killed", kMissing,
                       {.far_remembers = false}, one(Failure::near_killed)));
}

// Each precaution taken away, with the failure that shows what it was for.
void add_variants(std::vector<Case>& cases) {
  const auto add = [&cases](const char* sentence, const char* breaks, const Design& design,
                            const Bounds& bounds) {
    cases.push_back(make(sentence, breaks, design, bounds));
  };
  add("FLUSH is answered early", kFlush, {.flush_waits = false}, {.failures = 0});
  add("CLOSE does not wait for promised writes", kMissing, {.close_waits = false}, one(Failure::near_killed));
  add("promises begin before the far half knows of the open", kMissing, {.only_after_open = false},
      one(Failure::near_killed));
  add("the near half keeps no records", kMissing, {.near_remembers = false}, one(Failure::smbd_killed));
  add("an OPEN past the link does not ask what older connections owe", kMissing,
      {.ends_owing_connections = false}, one(Failure::far_killed));
  add("an OPEN over the link does not wait for what older connections owe", kMissing,
      {.waits_for_owing_connections = false}, one(Failure::server_power));
  add("an OPEN past the link does not ask what older connections owe: old bytes over new ones", kMissing,
      {.ends_owing_connections = false, .fences_broken = false}, one(Failure::line_cut, Policy::starts_over));
  add("an OPEN does not end connections whose near half is gone", kMissing, {.ends_orphans = false},
      one(Failure::near_killed));
  add("promises go on after Settled without the server's answer to a WRITE", kMissing,
      {.asks_after_settled = false}, one(Failure::near_killed));
  Bounds once = one(Failure::line_cut, Policy::insists);
  once.told_once = true;
  add("the far half tells what the near one knows better, after a cut line", kTwice,
      {.near_knows_better = false}, once);
  add("a late error says 'disk full' for another WRITE", kMissing, {.late_errors_name_no_cause = false},
      one(Failure::disk_full, Policy::waits_for_space));
  cases.push_back(make("smbd is killed, and the near daemon for good, before the client was told", nullptr,
                       {}, two(Failure::smbd_killed | Failure::near_killed)));
  cases.push_back(
      make("both daemons are killed", nullptr, {}, two(Failure::near_killed | Failure::far_killed)));
  cases.push_back(make("both hosts lose power", nullptr, {}, two(Failure::near_power | Failure::far_power)));
  add("files are not marked before their first promise; both daemons are killed", kMissing,
      {.marks_files = false}, two(Failure::near_killed | Failure::far_killed));
  add("files are not marked before their first promise; both hosts lose power", kMissing,
      {.marks_files = false}, two(Failure::near_power | Failure::far_power));
  add("a late error is told by CLOSE alone", kMissing, {.resets_for_close = false},
      one(Failure::disk_full, Policy::overlooks_close));

  add("a record is forgotten when it is told, not when the client has read it", kMissing,
      {.keeps_until_delivered = false, .writes_records_at_once = true, .shares_records = true},
      two(Failure::smbd_killed | Failure::far_killed));
  add("a write that the server refused is no record until it is told", kMissing,
      {.records_failures = false, .writes_records_at_once = true, .shares_records = true},
      two(Failure::disk_full | Failure::near_killed));
  add("the far half forgets an open when its server is gone", kMissing,
      {.keeps_aborted = false, .writes_records_at_once = true, .shares_records = true},
      two(Failure::smbd_killed | Failure::near_killed));
  add("records are not synced, and files are not marked", kMissing,
      {.syncs_records = false, .marks_files = false, .writes_records_at_once = true, .shares_records = true},
      two(Failure::near_power | Failure::far_power));
  add("promised writes still pass on an open whose oplock is lost", kMissing,
      {.fences_broken = false, .writes_records_at_once = true, .shares_records = true},
      two(Failure::near_killed | Failure::line_cut, Policy::starts_over));
}

// What no precaution of ours helps against, or none is taken.
void add_limits(std::vector<Case>& cases) {
  Bounds both = two(Failure::near_killed | Failure::far_killed);
  both.fails_open = true;
  cases.push_back(make("limit: both daemons are down, and clients reach the server past them", kMissing,
                       kEverything, both));
}

}  // namespace

std::vector<Case> write_cases(Extent extent) {
  std::vector<Case> cases;
  for (const auto& [policy, name] : kPolicies) {
    for (const bool flushes : {true, false}) {
      const std::string program = std::string("a program that ") + name + (flushes ? ", with FLUSH" : "");
      const Bounds bounds{.policy = policy, .flushes = flushes, .failures = 1};
      Bounds twice = bounds;
      twice.failures = 2;
      cases.push_back(make(program + ", directly: two failures", nullptr, {.pair = false}, twice));
      cases.push_back(make(program + ": any one failure", nullptr, {}, bounds));
      if (extent == Extent::small) continue;
      Bounds longer = bounds;
      longer.blocks = kMostBlocks;
      cases.push_back(make(program + ": any one failure, three blocks", nullptr, {}, longer));
      if (policy == Policy::insists) continue;  // tens of millions of states
      twice.fails_open = false;
      cases.push_back(make(program + ": any two failures, closed when both daemons are down", nullptr,
                           kEverything, twice));
    }
  }
  for (const Failure failure : {Failure::near_killed, Failure::far_killed, Failure::smbd_killed,
                                Failure::disk_full, Failure::line_cut}) {
    Bounds once = one(failure, Policy::insists);
    once.told_once = true;
    cases.push_back(make("a loss is told once", nullptr, {}, once));
  }
  add_known_breaks(cases);
  add_variants(cases);
  add_limits(cases);
  return cases;
}

}  // namespace longhaul::model
