// SPDX-License-Identifier: Apache-2.0
// The records of lost writes whose client has not been told, by client; bounded. Whom a record concerns, and until when.
// Part of LostWrites, which decides when one is made, told and removed.
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

// The purpose of an open. Replaces: it removes the content, so nothing is lost any more once it has
// succeeded.
enum class Use : std::uint8_t { attributes, reads, writes, replaces };

struct LostRecord {
  // How long connections are reset after the first reset that told the record.
  static constexpr std::chrono::seconds kResetsFor{120};

  LostFile file;
  Loss loss;
  bool reader_told = false;
  // The first reset that told it. Not stored.
  std::optional<link::TimePoint> reset_at;
  // Hashes of other spellings by which it was told, the latest ones. Not stored: after a restart it is told
  // again.
  struct OtherName {
    std::size_t spelled = 0;
    bool only_read = false;
  };
  std::vector<OtherName> told_by_others;

  // Resets have told it long enough.
  bool is_over(link::TimePoint now) const { return reset_at && now - *reset_at >= kResetsFor; }
  // Whether an open of the file reports it.
  bool concerns(const LostFile& opened, Use use, link::TimePoint now) const;
  // It was told by a name that is spelled otherwise.
  void told_by(const LostFile& other, bool only_read);
};

class LostRecords {
 public:
  using Client = modules::Address;
  using OwnerOf = std::function<std::string(const Client&)>;
  using Test = std::function<bool(const LostRecord&)>;
  using List = std::deque<LostRecord>;  // of a client, the oldest first
  // Limits in total. The owner with the most of an exceeded one loses the oldest file of its client with the
  // most: records caused by one peer never evict those of others.
  static constexpr std::size_t kMost = modules::kMostLostFiles, kMostNameBytes = 1 << 20;

  // `owner_of`: the site of a client with that address, a peer or (empty) this site.
  explicit LostRecords(OwnerOf owner_of) : owner_of_(std::move(owner_of)) {}

  std::size_t size() const { return size_; }
  std::size_t name_bytes() const { return name_bytes_; }
  std::vector<LostRecord> all() const;

  // Of one client; null: none. Names in it are changed by rename() only.
  List* of(const Client& client);
  const List* of(const Client& client) const;
  bool any(const Client& client, const Test& is_it) const;
  // Of exactly this file; null: none.
  const LostRecord* find(const LostFile& file) const;
  void for_each(const std::function<void(const LostRecord&)>& call) const;

  // A second loss of the same file adds to its record.
  void insert(LostRecord record);
  void rename(LostRecord& record, LostFile to);
  // The first one of the client for which that is true.
  std::optional<LostRecord> remove_first(const Client& client, const Test& is_it);
  // The next one to go while a limit is exceeded.
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
