// SPDX-License-Identifier: Apache-2.0
// The response that a connection stores while passing it on: its content so far, within the limits of the
// store and of all flows. It is added to the store when it is complete, and dropped otherwise.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proxy/modules/http/body.h"
#include "proxy/modules/http/site.h"

namespace longhaul::http {

class Storing {
 public:
  explicit Storing(std::shared_ptr<Site> site) : site_(std::move(site)) {}
  ~Storing() { drop(); }
  Storing(const Storing&) = delete;
  Storing& operator=(const Storing&) = delete;

  // Replaces the previous response.
  void begin(Stored response);
  // Where content is to be added; null if nothing is stored now.
  Content* content() { return response_ ? &content_ : nullptr; }
  // To be called after content was added: drops it if it is too large, alone or together with others that are
  // arriving.
  void count();
  // `erasures`: ObjectStore::erasures() at the time of the request.
  void complete(const std::string& key, std::uint64_t erasures, bool uses_disk);
  void drop();
  std::uint64_t bytes() const { return counted_bytes_; }

 private:
  std::shared_ptr<Site> site_;
  std::optional<Stored> response_;
  Content content_;
  std::uint64_t counted_bytes_ = 0;  // of content_, as counted in Site::pending_bytes
};

}  // namespace longhaul::http
