// SPDX-License-Identifier: Apache-2.0
// The stored responses of a site on disk, in addition to those in memory: stored responses are also written
// to disk, and read back into memory when a request needs them.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "proxy/modules/http/object_store.h"
#include "proxy/modules/http/stored_record.h"
#include "proxy/modules/objects.h"

namespace longhaul::http {

class OnDisk final : public BehindStore {
 public:
  using Asked = modules::Objects::Id;
  // `objects` and `memory` outlive this object.
  OnDisk(modules::Objects& objects, ObjectStore& memory, std::function<Clocks()> clocks);
  ~OnDisk() override;

  // Has the response that answers requests like this read into memory, unless there is none, or it has been
  // read for so long already that waiting for it is of no use.
  std::optional<Asked> ask(const std::string& key, const RequestHead& request);
  bool is_coming(Asked asked) const { return reading_.contains(asked); }

  // BehindStore
  void put(const std::string& key, Stored& stored) override;
  void erase(const std::string& key) override { objects_.erase(key); }
  std::uint64_t clear() override { return objects_.clear(); }
  std::uint64_t memory_bytes() const override { return objects_.memory_bytes(); }

 private:
  void arrived(Asked asked, bool is_sure, const std::string& key, const RequestHead& request, const Slice* bytes);
  void erase_alike(const std::string& key, Buffer tag, bool all);

  modules::Objects& objects_;
  ObjectStore& memory_;
  std::function<Clocks()> clocks_;
  std::map<Asked, link::TimePoint> reading_;              // since when
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // later completions of reads do nothing
};

// Lets a request wait for the disk, no longer than a nearby server would take to respond.
class DiskWait {
 public:
  static constexpr link::Duration kMost = std::chrono::milliseconds(200);
  // Starts reading once. Returns true while undecided; then call again.
  bool must_wait(link::TimePoint now, OnDisk& disk, ObjectStore& memory, const std::string& key, const RequestHead& request);
  bool has_asked() const { return asked_.has_value(); }

 private:
  bool has_looked_ = false;
  std::optional<OnDisk::Asked> asked_;
  link::TimePoint since_{};
};

}  // namespace longhaul::http
