// SPDX-License-Identifier: Apache-2.0
// The stored responses of a site in memory, shared by the clients of all its flows. Bounded: the least
// recently used are evicted. Changes are passed on to a larger store behind this one, if there is one.
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
  virtual void put(const std::string& key, Stored& stored) = 0;  // sets Stored::copy
  virtual void erase(const std::string& key) = 0;
  virtual std::uint64_t clear() = 0;
  virtual std::uint64_t memory_bytes() const = 0;  // counts against the limit of the store in front
};

class ObjectStore {
 public:
  static constexpr std::size_t kMostVariants = 8;  // of one key (Vary)
  static constexpr std::size_t kErasuresKnown = 4096;

  explicit ObjectStore(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Sets the store behind this one (null: none). It must outlive this object, or be replaced first.
  void use(BehindStore* behind) { behind_ = behind; }

  // Larger objects are not stored.
  std::uint64_t most_object_bytes() const { return most_bytes_ / 4; }

  // The response stored for such a request, fresh or not; null if there is none.
  Object find(const std::string& key, const RequestHead& request);
  // Replaces the response to the same request (Vary).
  void put(const std::string& key, Stored stored);
  // The same for a response read from the store behind, which is not written there again.
  void keep(const std::string& key, Stored stored);
  void erase(const std::string& key);
  // Lowers the limit by `bytes`; replaces earlier calls.
  void leave_room(std::uint64_t bytes);
  // Clears memory and the store behind. Returns the bytes removed; what was in both counts once.
  std::uint64_t clear();

  std::uint64_t bytes() const { return bytes_; }
  // A response requested before an erasure and received after it may be the erased version. `since`:
  // erasures() at the time of the request. Only the latest kErasuresKnown are known; for older requests every
  // key counts as erased.
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
  std::deque<std::size_t> erased_;  // hashes of the keys erased last; the last element is number erasures_
};

}  // namespace longhaul::http
