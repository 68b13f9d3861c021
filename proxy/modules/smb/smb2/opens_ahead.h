// SPDX-License-Identifier: Apache-2.0
// The opens made ahead that a client may still receive: the state of each, and which one belongs to a CREATE,
// a file or an expired time. Pure; far_opens.h sends and decides.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/message.h"
#include "proxy/modules/smb/smb2/opening_row.h"

namespace longhaul::smb::smb2 {

class OpensAhead {
 public:
  using Number = std::uint64_t;
  // opening: its CREATE is not answered. offered: the near half may give it to its client. taken_back: no
  // longer, unless it has done so already.
  enum class State : std::uint8_t { opening, offered, taken_back };
  struct Ahead {
    State state = State::opening;
    SessionId session = 0;
    TreeId tree = 0;
    PlainOpen asked;
    FileName name;
    std::uint64_t bytes = 0;         // approximate number of bytes fetched with it
    std::vector<Slice> questions;    // queries that are sent about it
    bool unwanted = false;           // while opening: to be closed
    bool holds = false;              // requests of the client wait behind it
    std::optional<Message> waiting;  // while opening: the client's own CREATE
    FileId file;                     // this and the following: since it is open
    OpenKey key;
    Slice response;
    TimePoint until{};
    std::optional<Message> broken;  // the server's break
  };
  using All = std::map<Number, Ahead>;

  // How long an offer lasts.
  static constexpr modules::Duration kLife = std::chrono::seconds(5);

  Number next_number() { return next_number_++; }
  void add(Number number, Ahead ahead) { opens_.emplace(number, std::move(ahead)); }
  Ahead* find(Number number);
  Ahead remove(Number number);  // must exist
  const All& all() const { return opens_; }
  std::size_t size() const { return opens_.size(); }
  std::size_t looks() const;
  std::uint64_t bytes() const;

  // The server has opened the file.
  void opened(Number number, const Open& open);
  void offered(Number number, TimePoint until);
  std::optional<Number> of_file(const FileId& file) const;

  // The open that answers this CREATE: offered, or being opened for no client yet.
  std::optional<Number> fitting(const OpeningRow::Opened& asked) const;
  // The client's CREATE waits for an open in progress.
  void wait_for(Number number, const Message& create);
  std::optional<Message> take_waiting(Number number);
  std::size_t waiting() const { return waiting_; }

  std::vector<Number> taken_back() const;
  // Opens offered for too long.
  std::vector<Number> expired(TimePoint now) const;
  std::optional<TimePoint> next_expiry() const;

 private:
  All opens_;
  std::unordered_map<FileId, Number, FileIdHash> by_file_;
  Number next_number_ = 1;
  std::size_t waiting_ = 0;  // number of waiting CREATEs
};

}  // namespace longhaul::smb::smb2
