// SPDX-License-Identifier: Apache-2.0
// The model of writes that are answered early: one program that writes one file through the pair, and
// everything that may fail meanwhile. The state is what each party knows and what is on its way; what is left
// out is in README.md.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/model/book.h"
#include "tests/model/design.h"
#include "tests/model/ledger.h"

namespace longhaul::model {

constexpr unsigned kMostBlocks = 3, kFlows = 2, kQueue = 4;

// rename: by the open file's handle. stream: a compound that opens a named stream, empties and closes it.
// Settled: the near half's word that nothing is promised any more until the server has answered another
// WRITE. Aside: a half's word that it no longer reads what comes from its own network.
enum class Kind : std::uint8_t { none, open, open_anew, write, flush, close, settled, rename, stream, aside };

// A request, its answer, or the far half's word on a promised one (Kept).
struct Message {
  Kind kind = Kind::none;
  std::uint8_t block = 0;
  std::uint8_t edition = 0;   // which content: the second is written by a program that starts over
  std::uint8_t promised = 0;  // was answered by the near half
  Answer answer = Answer::success;
  std::uint8_t name = 0;   // by which it opens the file
  std::uint8_t looks = 0;  // it opens it only to rename it

  bool opens() const { return kind == Kind::open || kind == Kind::open_anew; }
  unsigned write() const { return block + 4U * (edition - 1U); }  // its number in the ledger
};
using Packed = std::uint16_t;  // zero: none
Packed pack(const Message& message);
Message unpack(Packed packed);

struct Queue {
  std::array<Packed, kQueue> at{};
  bool empty() const { return at[0] == 0; }
  void push(const Message& message);
  void erase(unsigned place);
};

// linked: through both halves. past_near: the near daemon relays it to the server by itself. through_far: the
// near daemon is down, and the far daemon meets it on its host. plain: nobody but client and server.
enum class Route : std::uint8_t { none, linked, past_near, through_far, plain };

// One connection of the client, and what is left of it anywhere. Fields that are one or zero are bytes, so
// that a state has no padding.
struct Flow {
  Queue to_far, at_server, to_near;
  Packed to_client = 0;  // an answer that the client has not read
  Packed held = 0;       // an OPEN that the near daemon, or the guard of the far one, has to decide on
  Route route = Route::none;
  std::uint8_t client = 0, near = 0, far = 0, server = 0;  // this end is there
  std::uint8_t guid = 0;                                   // which login of the client
  std::uint8_t opened = 0, oplock = 0;                     // at the server
  std::uint8_t may_promise = 0;    // near half: it was told that the far half holds an oplock
  std::uint8_t permit = 0;         // far half: promises may be on their way
  std::uint8_t failed_at_far = 0;  // far half: a promised write has failed
  std::uint8_t session_gone = 0;   // closed by the server's administrator
  std::uint8_t aborted = 0;        // far half: the server's end is gone, and the near half is told
  std::uint8_t orderly = 0;        // near half: ended with nothing owed, or with a record of it
  std::uint8_t telling = 0;        // 1: from the near half's record, 2: from the far half's, 3: by the reset
  std::uint8_t telling_name = 0;
  std::uint8_t proved = 0;                   // the client has read that
  std::uint8_t counted = 0;                  // as a loss
  std::uint8_t settled = 0;                  // near half: it has said so
  std::uint8_t held_at_far = 0;              // far half: an oplock was granted for it, at some time
  std::uint8_t number = 0;                   // which run of the near daemon
  std::uint8_t near_name = 0, far_name = 0;  // of the open file, as the halves, or a guard, know it
  std::uint8_t tracks = 0;                   // a guard: its record existed when it was opened
  std::uint8_t renaming = 0;                 // near half: a RENAME has no answer
  std::uint8_t stops = 0;                    // near half: short of memory, it promises nothing more
  std::uint8_t unread = 0, far_unread = 0;   // both halves, or a guard, pass what the client sends unread
  std::uint8_t far_aside = 0, deaf = 0;      // the same of the server's answers: far half, near half
  std::uint8_t unused = 0;                   // where a state would have padding
  Ledger ledger;                             // near half
};

// One daemon.
struct Memory {
  std::uint8_t up = 1;
  std::uint8_t number = 1;  // how often it was started
  // On disk: connections with promises, which of these have the second name, and names whose mark backs a
  // record; what the former are of, a run of the near daemon.
  std::uint8_t marks = 0, marked_run = 0;
  Book known, unsynced, synced;  // in the process, in the page cache, on its disk
};

enum class Stage : std::uint8_t { connecting, idle, waiting, success, failure };

struct WriteState {
  std::array<Flow, kFlows> flows{};
  Memory near, far;
  std::array<std::uint8_t, kMostBlocks> cache{}, disk{};  // the server's: which edition of each block
  std::array<std::uint8_t, kMostBlocks> acked{};          // to the program
  std::uint8_t excused = 0;                               // lost by the server's own power loss
  std::uint8_t cut = 0, full = 0;                         // the line; the server's disk
  std::uint8_t name = 0;                                  // of the file
  // The program.
  Stage stage = Stage::connecting;
  std::uint8_t place = 0, has_handle = 0, edition = 1, logins = 0, current = 0;
  std::uint8_t told = 0, losses = 0, knows = 0;
  std::uint8_t false_alarm = 0, flush_broken = 0;
  std::uint8_t renamed = 0;    // 1: asked for, 2: known to be done
  std::uint8_t was_short = 0;  // the far daemon, of memory
  std::uint16_t failures = 0;  // which have happened, each once at most
};

struct WriteStep {
  WriteState next;
  const char* text = "";
  std::uint8_t flow = kFlows;  // none
  Packed message = 0;
  bool moves = true;
  std::string line() const;
};

class Writes {
 public:
  using Step = WriteStep;
  Writes(const Design& design, const Bounds& bounds) : design_(design), bounds_(bounds) {}

  WriteState first() const { return {}; }
  void steps(const WriteState& state, std::vector<Step>& out) const;
  const char* forbidden(const WriteState& state) const;
  const char* forbidden_end(const WriteState& state) const;

 private:
  using Steps = std::vector<Step>;
  using State = WriteState;
  // writes_client.cc
  void client_steps(const State& state, Steps& out) const;
  Message next_request(const State& state) const;
  void send(State& state, const Message& request) const;
  void read(State& state) const;
  void connection_lost(State& state) const;
  void told_error(State& state, const Message& answer) const;
  bool at_close(const State& state) const;
  Kind kind_at(unsigned place) const;
  void goes_to_spare(State& state) const;
  bool is_early(const State& state, const Message& request) const;
  bool promises() const;
  // writes_near.cc
  void near_steps(const State& state, Steps& out) const;
  void near_opens(const State& state, unsigned number, Steps& out) const;
  void near_takes(State& state, unsigned number) const;
  bool near_is_renaming(const State& state) const;
  bool is_sealed(const Flow& flow) const;
  bool tells(const Memory& memory, const Flow& flow, const Message& asked, std::uint8_t name) const;
  void tell_by_reset(Memory& memory, Flow& flow, std::uint8_t name) const;
  enum class Rest : std::uint8_t { dropped, goes_on };  // of what is on its way to the far half
  void near_ends(State& state, unsigned number, Rest rest) const;
  // writes_far.cc
  void far_steps(const State& state, Steps& out) const;
  void far_takes(const State& state, unsigned number, Steps& out) const;
  void guard_opens(const State& state, unsigned number, Steps& out) const;
  void session_ends(State& state, std::uint8_t near_run) const;
  void far_ends(State& state, unsigned number) const;
  void end_orphans(State& state, unsigned number) const;
  // writes_server.cc
  void server_steps(const State& state, Steps& out) const;
  void execute(State& state, unsigned number, Message message) const;
  // writes_failures.cc
  void failure_steps(const State& state, Steps& out) const;
  // writes_memory.cc
  void memory_steps(const State& state, Steps& out) const;
  void near_gives_up(const State& state, unsigned number, Steps& out) const;
  void near_hears_aside(State& state, unsigned number) const;
  bool others_owe(const State& state, unsigned number) const;
  static bool has_unread(const State& state);
  // records.cc
  void write_steps(const State& state, Steps& out) const;
  void add_record(State& state, Memory& memory, Flow& flow) const;
  bool has_record(const Memory& memory, const Flow& flow, std::uint8_t name) const;
  enum class Why : std::uint8_t { told, replaced };
  void remove_record(Memory& memory, const Flow& flow, std::uint8_t name, Why why) const;
  void renamed(State& state, Memory& memory) const;
  std::uint8_t client_of(const Flow& flow) const;
  void write(Memory& memory) const;
  void delivered(State& state, Flow& flow) const;
  void note_deliveries(State& state, unsigned half) const;
  void mark(Memory& memory, unsigned number, std::uint8_t run, std::uint8_t name) const;
  static void unmark(Memory& memory, unsigned number);
  static constexpr unsigned kNameShift = 2, kBacksShift = 6;  // in Memory::marks
  static bool is_marked(const Memory& memory, std::uint8_t name);
  static void forget_mark(Memory& memory);
  void restarted(State& state, Memory& memory) const;

  static void add(Steps& out, const State& next, const char* text, unsigned flow = kFlows, Packed message = 0,
                  bool moves = true);

  Design design_;
  Bounds bounds_;
};

}  // namespace longhaul::model
