// SPDX-License-Identifier: Apache-2.0
// The responses that a site has stored, in memory, for the clients of all its flows. Bounded: what was used longest ago
// makes room. What is stored and erased here is, too, in the store behind it, which has more room.
#pragma once
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

class BehindStore {
 public:
  virtual ~BehindStore() = default;
  virtual void put(const std::string& key, Stored& stored) = 0;  // notes in it what is there
  virtual void erase(const std::string& key) = 0;
  virtual std::uint64_t clear() = 0;
  virtual std::uint64_t memory_bytes() const = 0;  // counts as this store's
};

class ObjectStore {
 public:
  static constexpr std::size_t kMostVariants = 8;  // of one key (Vary)
  static constexpr std::size_t kErasuresKnown = 4096;

  explicit ObjectStore(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // From now on; null: none. It outlives this, or another call.
  void use(BehindStore* behind) { behind_ = behind; }

  // Of one object; larger ones are not stored.
  std::uint64_t most_object_bytes() const { return most_bytes_ / 4; }

  // The one that answers requests like this, fresh or not; null: none.
  Object find(const std::string& key, const RequestHead& request);
  // Replaces the one for the same requests.
  void put(const std::string& key, Stored stored);
  // The same, of one that comes from the store behind.
  void keep(const std::string& key, Stored stored);
  void erase(const std::string& key);
  // From now on the store uses that much less than its limit.
  void leave_room(std::uint64_t bytes);
  // Everything, also behind: how many bytes, those that are in both counted once. Counts as an erasure of everything.
  std::uint64_t clear();

  std::uint64_t bytes() const { return bytes_; }
  // What was asked for before an erasure and comes after it may be what was erased: `since` is what erasures() was when it was
  // asked for. Only the latest erasures are known; before them, everything counts as erased.
  std::uint64_t erasures() const { return erasures_; }
  bool was_erased(const std::string& key, std::uint64_t since) const;

 private:
  struct Entry {
    std::vector<Object> variants;  // the newest last
    std::size_t bytes = 0;
    std::list<std::string>::iterator used;
  };
  void remove(std::map<std::string, Entry>::iterator entry);
  void evict();
  bool is_too_large(const std::string& key, const Stored& stored) const;

  std::uint64_t most_bytes_, bytes_ = 0, left_bytes_ = 0, erasures_ = 0;
  BehindStore* behind_ = nullptr;
  std::map<std::string, Entry> entries_;
  std::list<std::string> by_use_;  // the latest first
  std::deque<std::size_t> erased_;  // hashes of the latest keys erased, the last one is number erasures_
};

}  // namespace longhaul::http
