// SPDX-License-Identifier: Apache-2.0
// The response of a connection that is stored while it passes: its content so far, within the limits of the
// store and of all flows. It is in the store when it is complete, and nowhere if it never is.
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

  // Instead of the one before.
  void begin(Stored response);
  // Where its content goes; null: nothing is stored now.
  Content* content() { return response_ ? &content_ : nullptr; }
  // After content was added: drops it if it is too large, alone or together with others that are coming.
  void count();
  // `erasures`: ObjectStore::erasures() when it was asked for.
  void complete(const std::string& key, std::uint64_t erasures, bool uses_disk);
  void drop();
  std::uint64_t bytes() const { return counted_bytes_; }

 private:
  std::shared_ptr<Site> site_;
  std::optional<Stored> response_;
  Content content_;
  std::uint64_t counted_bytes_ = 0;  // of content_, in Site::pending_bytes
};

}  // namespace longhaul::http
