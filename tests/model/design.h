// SPDX-License-Identifier: Apache-2.0
// The parameters of a run of the model: the design with or without each of its precautions, the program on
// top, and limits on events. Defaults are the product's.
#pragma once
#include <cstdint>

namespace longhaul::model {

struct Design {
  bool pair = true;  // false: the same client and failures without the pair, the baseline

  // ---- what makes promises safe under any one failure, and most twos; false takes it away
  bool only_to_clients_that_report =
      true;                     // none to clients that hide the error of a CLOSE or a lost connection
  bool only_after_open = true;  // the far half knows of the open before the first promise
  bool flush_waits = true, close_waits = true;
  bool recognises_addresses = true;  // a record names the client's address; else the GUID of its login
  bool near_remembers = true;      // records of what the far side's, the server's or the line's failure lost
  bool far_remembers = true;       // the same where the near side vanished
  bool guards_bypassing = true;    // bypassing connections are checked for records too
  bool asks_after_settled = true;  // near: after Settled the next WRITE goes to the server first
  bool near_knows_better = true;   // far: what it suspects of a near daemon that still runs is void
  bool syncs_records = true;       // else they are only in the page cache
  bool keeps_until_delivered = true;  // a record or a late error is kept until the client has read the answer
  bool records_failures = true;       // a promised write that the server refused is a record until it is told
  // near: an OPEN past the link ends the client's older connections that still owe writes, one over the link
  // waits for them
  bool ends_owing_connections = true, waits_for_owing_connections = true;
  bool ends_orphans = true;  // far: an OPEN ends connections of that client whose near half is gone
  bool fences_broken =
      true;  // far: nothing more passes on an open whose oplock the near half did not give back
  bool keeps_aborted =
      true;  // far: an open whose server is gone is a record at once, which the near half may void
  bool late_errors_name_no_cause =
      true;  // a WRITE's answer bears "data lost" for an earlier one, not "disk full"
  bool resets_for_close =
      true;  // a late error that only a CLOSE could bear: the client's connection is reset
  bool marks_files = true;              // before its first promise a file is marked on both disks
  bool writes_records_at_once = false;  // before the client's connection is reset
  bool shares_records = false;          // each half gives the other one its records, if it reaches it
};

enum class Policy : std::uint8_t {
  stops,       // ends with the first error
  continues,   // a lost connection or session: logs in again, goes on behind the last acknowledged request
  reconnects,  // a library that does that by itself; CLOSE is a success where it knows that the connection is
               // lost
  ignores_close,    // the same, and the answer of CLOSE is of no interest: kernel clients
  overlooks_close,  // the status of CLOSE is of no interest, a lost connection is: pysmb
  waits_for_space,  // repeats a WRITE that was refused for lack of space
  starts_over,      // after an error: writes the file again from the start, once
  insists,          // goes on after the late error, too
};

enum class Failure : std::uint8_t {
  near_killed,
  near_power,
  far_killed,
  far_power,
  smbd_killed,
  server_power,
  session_closed,
  disk_full,
  line_cut,
};
constexpr unsigned kFailureKinds = 9;
constexpr std::uint16_t only(Failure failure) {
  return static_cast<std::uint16_t>(1U << static_cast<unsigned>(failure));
}
constexpr std::uint16_t kAllFailures = (1U << kFailureKinds) - 1;

struct Bounds {
  Policy policy = Policy::continues;
  bool flushes = true;  // before CLOSE
  unsigned blocks = 2;
  unsigned failures = 1;  // of all kinds together
  std::uint16_t kinds = kAllFailures;
  unsigned logins = 3;
  bool fails_open = true;  // with both daemons down a client reaches the server all the same
  bool told_once = false;  // also check that a loss is told once
};

}  // namespace longhaul::model
