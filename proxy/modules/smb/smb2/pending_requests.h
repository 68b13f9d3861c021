// SPDX-License-Identifier: Apache-2.0
// The requests of a connection that the server has not finally answered, by MessageId: what each of them
// requests, as far as its response changes the state of the connection. connection.h has their effects.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb2/open.h"

namespace longhaul::smb::smb2 {

// A request without its final response.
struct Pending {
  Command command = Command::echo;
  MessageId id{};
  SessionId session = 0;
  TreeId tree = 0;
  FileId file;  // resolved, if the command has one and it is known
  bool in_compound = false;
  bool async = false;  // an interim response has arrived
  AsyncId async_id = 0;
  std::uint16_t charge = 1;
  // READ, WRITE
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  // CREATE
  std::unique_ptr<Open> opening;     // completed by the response
  std::vector<MessageId> followers;  // elements of its compound that refer to its file
  bool closed_in_compound = false;   // its compound also closes the file: not worth reading ahead
  // SET_INFO, QUERY_INFO; the class also of QUERY_DIRECTORY
  InfoType info_type = InfoType::file;
  std::uint8_t info_class = 0;
  bool lists_afresh = false;  // QUERY_DIRECTORY
  std::size_t name_bytes = 0;
  // Counts of the file, until there is a response.
  Counted opens_file;
  Counted changes_file;
};

class PendingRequests {
 public:
  const Pending* find(MessageId id) const;
  Pending* find(MessageId id);
  // Replaces a request whose number is reused.
  void add(Pending request);

  struct Match {
    Pending request;  // of an interim response only its ids
    bool interim = false;
  };
  // The request that a response with this header belongs to, if any: the final response removes it.
  std::optional<Match> answered(const Header& response);
  // It needs no response of the server any more.
  std::optional<Pending> take(MessageId id);
  void clear();

  std::size_t size() const { return requests_.size(); }
  // With more of them, the client is not tracked: a server grants some thousands of credits.
  static constexpr std::size_t kMost = 1 << 14;
  bool are_too_many() const { return size() > kMost; }
  // Approximate memory.
  std::size_t held_bytes() const { return size() * kBytesEach + name_bytes_; }

 private:
  using ById = KeyedMap<MessageId, Pending>;
  Pending remove(ById::iterator request);

  static constexpr std::size_t kBytesEach = 384;  // including its entry in the table
  ById requests_;
  std::size_t name_bytes_ = 0;  // of files being opened
};

}  // namespace longhaul::smb::smb2
