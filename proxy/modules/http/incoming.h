// SPDX-License-Identifier: Apache-2.0
// A response that is stored while it arrives. It is added to the store when it is complete, and dropped
// otherwise.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "proxy/modules/http/body.h"
#include "proxy/modules/http/site.h"

namespace longhaul::http {

class Incoming {
 public:
  // `erasures`: ObjectStore::erasures() at the time of the request.
  Incoming(std::shared_ptr<Site> site, std::string key, std::uint64_t erasures, Stored stored, bool uses_disk)
      : site_(std::move(site)), key_(std::move(key)), erasures_(erasures), stored_(std::move(stored)) {
    stored_.in_memory_only = !uses_disk;
  }
  ~Incoming() { site_->pending_bytes -= content_.size(); }
  Incoming(const Incoming&) = delete;

  // Returns false if the response is too large, alone or together with others that are arriving; it need not
  // be continued.
  bool add(Bytes bytes) {
    const std::uint64_t most = site_->store.most_object_bytes();
    content_.add(bytes);
    site_->pending_bytes += bytes.size();
    return content_.size() <= most && site_->pending_bytes <= 2 * most;
  }
  std::uint64_t bytes() const { return content_.size(); }

  // The response is complete.
  void store() {
    if (site_->store.was_erased(key_, erasures_)) return;
    site_->pending_bytes -= content_.size();
    stored_.content_bytes = content_.size();
    stored_.content = content_.take();
    site_->store.put(key_, std::move(stored_));
  }

 private:
  std::shared_ptr<Site> site_;
  std::string key_;
  std::uint64_t erasures_;
  Stored stored_;
  Content content_;
};

}  // namespace longhaul::http
