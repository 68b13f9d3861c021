// SPDX-License-Identifier: Apache-2.0
// The far half's handles opened ahead: if the client reads the attributes of a file that it holds open under
// a batch oplock, by an open and a close, the far half opens more such handles and pushes the responses
// (near_looks.h). They hinder no other client; they are closed when the near half no longer uses them.
#pragma once
#include <map>
#include <vector>

#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class FarLooks {
 public:
  FarLooks(Outputs& out, ServerLeg& leg, Connection& connection, modules::Counters& counters)
      : out_(out), leg_(leg), connection_(connection), counters_(counters) {}

  void on_surroundings(const Surroundings& surroundings) { features_ = surroundings.features; }
  // A request of the client is sent to the server.
  void request(const Message& message, const Slice& frame);
  // Its response; `opened` is null if the open failed.
  void answered(MessageNumber number, const Open* opened);
  void taken(const Local& local);
  void near_dropped(std::uint32_t epoch);
  void stop() { stopped_ = true; }
  void pump();

 private:
  struct File {
    Slice frame;  // the request
    std::vector<OpenKey> handles;
    std::size_t opening = 0, wanted = 1;
  };
  void open(const OpenKey& file);
  void opened(const OpenKey& file, std::uint32_t epoch, const Slice& frame, const Message& answer);
  void close(const OpenKey& handle);
  void close_at_server(const Ids& of, std::uint16_t fid);

  static constexpr std::size_t kMostWanted = 8, kMostFiles = 16, kMostCreating = 64;

  Outputs& out_;
  ServerLeg& leg_;
  Connection& connection_;
  modules::Counters& counters_;
  Features features_;
  std::map<MessageNumber, Slice> creating_;
  std::map<OpenKey, File> files_;
  std::uint32_t epoch_ = 0;
  bool stopped_ = false;
};

}  // namespace longhaul::smb::smb1
