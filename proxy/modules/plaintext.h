// SPDX-License-Identifier: Apache-2.0
// Lets one module read the plaintext of a connection that another module decrypts: runs the near half of the
// module that recognises the client's first bytes, without a twin. If no module recognises them, and after it
// has stepped aside, everything passes. Without I/O, like the halves.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/descriptor.h"

namespace longhaul::modules {

// The modules that read plaintext (Descriptor::reads_plaintext), in the order of recognition.
struct PlaintextReader {
  Recognised (*recognise)(Bytes first);
  bool (*may_be_server)(Bytes first) = nullptr;
  std::shared_ptr<Instance> instance;
};
using PlaintextReaders = std::vector<PlaintextReader>;

class Plaintext {
 public:
  // `verified_name`: the server's name in its certificate.
  Plaintext(PlaintextReaders readers, const Ends& ends, std::string verified_name)
      : readers_(std::move(readers)), ends_(ends), name_(std::move(verified_name)) {}

  // Called first, and then like Module::on_surroundings().
  void on_surroundings(TimePoint now, const Surroundings& told);
  void from_client(TimePoint now, Slice bytes);
  // The number of pieces of earlier client bytes, which the server already has, that server_has() will pass.
  // Bytes of the client wait for them, up to kMostWaiting.
  void expect_server_has(std::uint64_t pieces) { expected_ = pieces; }
  void server_has(TimePoint now, Slice bytes);
  // The client's earlier bytes are unknown, so its later bytes cannot be read. Responses to known requests
  // still can.
  void client_is_unknown(TimePoint now);
  void from_server(TimePoint now, Slice bytes);
  // A message of the reader's far half.
  void from_twin(TimePoint now, Slice message);
  void client_closed(TimePoint now);
  void server_closed(TimePoint now);
  void on_timeout(TimePoint now);
  void give_up_memory(TimePoint now);

  // Only ToLan, ToStream, EndLan, EndStream and Abort.
  std::optional<Output> poll_output();
  void on_room(TimePoint now, const Room& room);
  std::optional<TimePoint> next_timeout() const {
    return reader_ ? reader_->next_timeout() : is_chosen_ ? std::nullopt : server_waits_until_;
  }

  bool has_reader() const { return reader_ != nullptr; }
  std::size_t held_bytes() const {
    return first_.size() + waiting_.size() + of_server_.size() + (reader_ ? reader_->held_bytes() : 0);
  }
  std::size_t queued_bytes() const { return reader_ ? reader_->queued_bytes() : 0; }
  std::size_t state_bytes() const { return reader_ ? reader_->state_bytes() : 0; }
  // The reader's counters, also after it has stepped aside.
  const Counters& counters() const { return counters_; }
  Reason reason() const { return reason_; }

 private:
  static constexpr std::size_t kMostWaiting = 256 * 1024;

  void choose(TimePoint now);
  void pass();
  bool server_waits(TimePoint now, Bytes bytes);
  void late_is_over(TimePoint now);
  void collect(TimePoint now);

  PlaintextReaders readers_;
  Ends ends_;
  std::string name_;
  Surroundings told_;
  bool is_chosen_ = false;
  Buffer first_;  // of the client, until a module is chosen
  std::size_t first_at_server_ = 0;  // this many bytes at the beginning of first_
  std::uint64_t expected_ = 0;
  Buffer waiting_;  // of the client, waits for expected pieces
  bool closed_waits_ = false;
  Buffer of_server_;  // until a module is chosen
  std::optional<TimePoint> server_waits_until_;
  std::unique_ptr<Module> reader_;
  bool client_passes_ = false, server_passes_ = false;  // bypass the reader
  std::deque<Output> out_;
  Counters counters_;
  Reason reason_{};
};

}  // namespace longhaul::modules
