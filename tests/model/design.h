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
      true;                 // a late error that only a CLOSE could bear: the client's connection is reset
  bool marks_files = true;  // before its first promise a file is marked on both disks
  bool writes_records_at_once = false;  // before the client's connection is reset
  bool shares_records = false;          // each half gives the other one its records, if it reaches it

  // ---- renames
  bool tells_renames = true;   // a rename continues with the file, as an OPEN for writing does
  bool names_follow = true;    // open files have the new name in later records
  bool records_follow = true;  // records and marks have it as well
  // No case breaks without it, because a program here waits for the answer to its RENAME.
  bool waits_for_renames = true;  // near: nothing is promised while a rename has no answer

  // ---- named streams
  bool streams_are_apart = true;    // emptying a stream is not emptying the file
  bool not_through_streams = true;  // nothing is promised through a stream: no OPEN of one is told

  // ---- signed and encrypted connections
  bool resets_sealed = true;       // a guard resets a connection that it cannot answer
  bool reset_ends_record = false;  // one reset is the report; else each connection is reset that cannot be told
  bool stays_where_sealed = true;  // the near half reads connections that it cannot answer, and resets them

  // ---- memory
  bool aside_owes_nothing = true;     // the near half steps aside only when each promise is settled
  bool aside_without_records = true;  // and only where its client has nothing to be told
  bool counts_unread = true;          // nothing is promised while a connection of the client is not read
  bool doubts_behind_aside = true;    // far: promises may be on their way after it has stepped aside itself
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
  reopens_idle,  // a connection that is lost between requests is opened again; one lost in a request ends it
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

// Something that the program does once between two blocks, or behind the last one.
enum class Extra : std::uint8_t {
  none,
  renames,         // the file, by its handle, and continues under the new name
  empties_stream,  // creates a named stream of the file, or empties it
};

// Who can change what crosses a connection.
enum class Seal : std::uint8_t {
  none,       // everyone
  keys,       // signed, and the far side has the server's keys: both halves, but no guard
  first_key,  // the same, but only the first login used a key that the far side has
};

// Which daemon may be short of memory, from any moment on.
enum class Short : std::uint8_t { none, near, far };

struct Bounds {
  Policy policy = Policy::continues;
  bool flushes = true;  // before CLOSE
  unsigned blocks = 2;
  unsigned failures = 1;  // of all kinds together
  std::uint16_t kinds = kAllFailures;
  unsigned logins = 3;
  bool fails_open = true;  // with both daemons down a client reaches the server all the same
  bool told_once = false;  // also check that a loss is told once
  Extra extra = Extra::none;
  unsigned extra_at = 1;   // how many blocks come before it
  bool in_stream = false;  // what the program writes is a named stream
  Seal seal = Seal::none;
  bool encrypted = false;  // not only signed: a guard cannot even tell which file is meant
  Short memory = Short::none;
  bool spare = false;  // the client has a second connection from the start, and goes on there
};

}  // namespace longhaul::model
