// SPDX-License-Identifier: Apache-2.0
// The records of lost writes whose clients were not informed yet, by client; bounded. Determines which opens
// a record concerns, and until when. Part of LostWrites, which decides when one is made, reported and
// removed.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proxy/link/types.h"
#include "proxy/modules/losses.h"
#include "proxy/modules/promises/lost_file.h"

namespace longhaul::promises {

// The purpose of an open. `replaces`: it removes the content, so nothing is lost any more once it has
// succeeded.
enum class Use : std::uint8_t { attributes, reads, writes, replaces };

struct LostRecord {
  // How long connections are reset after the first reset that reported the record.
  static constexpr std::chrono::seconds kResetsFor{120};

  LostFile file;
  Loss loss;
  bool reader_told = false;
  // The first reset that reported it. Not stored.
  std::optional<link::TimePoint> reset_at;
  // Hashes of other spellings under which it was reported, the latest ones. Not stored: after a restart it is
  // reported again.
  struct OtherName {
    std::size_t spelled = 0;
    bool only_read = false;
  };
  std::vector<OtherName> told_by_others;

  // Whether resets have reported it for long enough.
  bool is_over(link::TimePoint now) const { return reset_at && now - *reset_at >= kResetsFor; }
  // Whether an open of the file reports this record.
  bool concerns(const LostFile& opened, Use use, link::TimePoint now) const;
  // The record was reported for another spelling of the name.
  void told_by(const LostFile& other, bool only_read);
};

class LostRecords {
 public:
  using Client = modules::Address;
  using OwnerOf = std::function<std::string(const Client&)>;
  using Test = std::function<bool(const LostRecord&)>;
  using List = std::deque<LostRecord>;  // of a client, oldest first
  // Total limits. If one is exceeded, the owner with the most records loses the oldest file of its client
  // with the most: records caused by one peer never evict those of others.
  static constexpr std::size_t kMost = modules::kMostLostFiles, kMostNameBytes = 1 << 20;

  // `owner_of`: the site of a client with that address: a peer, or empty for this site.
  explicit LostRecords(OwnerOf owner_of) : owner_of_(std::move(owner_of)) {}

  std::size_t size() const { return size_; }
  std::size_t name_bytes() const { return name_bytes_; }
  std::vector<LostRecord> all() const;

  // The records of one client; null if there are none. Their names may be changed only by rename().
  List* of(const Client& client);
  const List* of(const Client& client) const;
  bool any(const Client& client, const Test& is_it) const;
  // The record of exactly this file; null if there is none.
  const LostRecord* find(const LostFile& file) const;
  void for_each(const std::function<void(const LostRecord&)>& call) const;

  // A second loss of the same file is added to its record.
  void insert(LostRecord record);
  void rename(LostRecord& record, LostFile to);
  // Removes the first record of the client that passes the test.
  std::optional<LostRecord> remove_first(const Client& client, const Test& is_it);
  // Removes the next record while a limit is exceeded.
  std::optional<LostRecord> evict();

 private:
  struct Owner {
    std::size_t files = 0, name_bytes = 0;
  };
  struct OfClient {
    std::map<std::string, Owner>::iterator owner;
    List records;
  };
  using Clients = std::map<Client, OfClient>;
  LostRecord take_out(Clients::iterator of, List::iterator record);

  OwnerOf owner_of_;
  std::map<std::string, Owner> owners_;
  Clients clients_;
  std::size_t size_ = 0, name_bytes_ = 0;
};

}  // namespace longhaul::promises
