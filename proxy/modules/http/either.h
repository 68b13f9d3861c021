// SPDX-License-Identifier: Apache-2.0
// The near half until the client's first bytes arrive.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "proxy/modules/http/site.h"
#include "proxy/modules/http/undecided.h"

namespace longhaul::http {

class Either final : public Undecided {
 public:
  Either(const modules::Ends& ends, std::shared_ptr<Site> site, std::string_view verified_name = {})
      : ends_(ends), site_(std::move(site)), name_(verified_name) {}

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_lan_seen_late(TimePoint now, Slice bytes) override;
  void seen_late_is_over(TimePoint now) override;
  void from_stream(TimePoint now, Slice bytes) override;

 private:
  void choose(TimePoint now, bool is_2) override;

  modules::Ends ends_;
  std::shared_ptr<Site> site_;
  std::string name_;
  std::size_t at_server_ = 0;  // start of first_ in the bytes to the server
  bool late_is_over_ = false;
};

}  // namespace longhaul::http
