// SPDX-License-Identifier: Apache-2.0
// The model of READs that are answered from what was read ahead under an oplock on the client's behalf, while
// others change the file: a program on the server, which breaks no oplock, a second SMB client, and the
// client itself.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace longhaul::model {

struct ReadDesign {
  bool watches = true;               // the far half has the server notify it of changes
  bool fetches_only_watched = true;  // and fetches nothing before the server listens
  bool listens_at_once = true;       // the server says that it listens when it does
  bool checks_stamps = true;         // data answer only READs under the stamps with which they were asked
  bool pauses_for_changes = true;    // nothing is fetched while a change of the client's is under way
  unsigned near_silence =
      1;  // after so many ticks without a word of the far half the near one answers nothing
  unsigned far_silence = 2;  // after so many the far half gives the oplock back without the near one's word
};

struct ReadBounds {
  std::uint8_t local_writes = 2, smb_writes = 1, own_writes = 1, cuts = 1;
};

constexpr unsigned kMostVersions = 8, kReadQueue = 4;

enum class Note : std::uint8_t { none, ahead, drop, take_back, write, given_back };
struct Told {
  Note kind = Note::none;
  std::uint8_t version = 0, near_stamp = 0, far_stamp = 0;
};

enum class Fetch : std::uint8_t { none, asked, read };

struct ReadState {
  std::array<Told, kReadQueue> to_near{}, to_far{};
  std::array<std::uint8_t, kMostVersions>
      unseen{};              // ticks since a version was replaced beside smbd, plus one
  std::uint8_t version = 0;  // the server's
  std::uint8_t oldest = 0;   // that a READ may still be answered with
  std::uint8_t asked_to_listen = 0, listening = 0,
               notified = 0;  // server; notified: on its way to the far half
  std::uint8_t oplock = 1, wanted = 0,
               taken_back = 0;  // server: another client waits; the far half was asked
  Fetch fetch = Fetch::none;
  std::uint8_t fetched = 0, fetch_near_stamp = 0, fetch_far_stamp = 0;
  std::uint8_t watching = 0, far_stamp = 0, near_stamp_seen = 0, pushed = 0, changing = 0,
               far_silent = 0;                                                       // far
  std::uint8_t near_stamp = 0, far_stamp_seen = 0, may_answer = 1, near_silent = 0;  // near
  std::uint8_t cached = 0;                                                           // the version plus one
  std::uint8_t owing = 0;  // the client's WRITEs that are not at the server
  std::uint8_t cut = 0, stale = 0;
  std::uint8_t local_writes = 0, smb_writes = 0, own_writes = 0, cuts = 0;
};

struct ReadStep {
  ReadState next;
  const char* text = "";
  std::uint8_t version = 0;
  bool moves = true;
  std::string line() const;
};

class Reads {
 public:
  using Step = ReadStep;
  Reads(const ReadDesign& design, const ReadBounds& bounds) : design_(design), bounds_(bounds) {}

  ReadState first() const { return {}; }
  void steps(const ReadState& state, std::vector<Step>& out) const;
  const char* forbidden(const ReadState& state) const {
    return state.stale ? "a READ was answered with bytes that a direct one could not have got" : nullptr;
  }
  const char* forbidden_end(const ReadState&) const { return nullptr; }

 private:
  using Steps = std::vector<Step>;
  void client_steps(const ReadState& state, Steps& out) const;
  void near_steps(const ReadState& state, Steps& out) const;
  void far_steps(const ReadState& state, Steps& out) const;
  void server_steps(const ReadState& state, Steps& out) const;
  void time_steps(const ReadState& state, Steps& out) const;
  void changed(ReadState& state) const;

  ReadDesign design_;
  ReadBounds bounds_;
};

}  // namespace longhaul::model
