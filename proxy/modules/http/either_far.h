// SPDX-License-Identifier: Apache-2.0
// The far half of a connection whose client has not spoken yet.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "proxy/modules/http/far.h"
#include "proxy/modules/http/h2/far.h"
#include "proxy/modules/http/undecided.h"

namespace longhaul::http {

class EitherFar final : public Undecided {
 public:
  EitherFar(const modules::Ends& ends, std::shared_ptr<Site> site, std::string owner)
      : ends_(ends), site_(std::move(site)), owner_(std::move(owner)) {}

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override {
    told_ = told;
    if (half_) half_->on_surroundings(now, told);
  }
  void from_lan(TimePoint now, Slice bytes) override {
    if (half_) return half_->from_lan(now, std::move(bytes));
    hold_of_server(now, bytes.bytes(), fetches());
  }
  void from_stream(TimePoint now, Slice bytes) override {
    if (half_) return half_->from_stream(now, std::move(bytes));
    hold_first(now, bytes.bytes());
  }

 private:
  bool fetches() const { return told_.features.modules.value("http.prefetch") != 0; }
  void choose(TimePoint now, bool is_2) override {
    // Without prefetch HTTP/2 is not terminated here: the half for HTTP/1 passes it unchanged.
    if (is_2 && fetches())
      half_ = std::make_unique<h2::Far>(ends_, site_, owner_, std::string_view(), Pushing::Content::in_stream);
    else
      half_ = std::make_unique<Far>(ends_, site_, owner_);
    half_->on_surroundings(now, told_);
    const Buffer first = std::exchange(first_, {}), of_server = std::exchange(of_server_, {});
    if (!first.empty()) half_->from_stream(now, Slice::copy_of(first));
    if (!of_server.empty()) half_->from_lan(now, Slice::copy_of(of_server));
  }

  modules::Ends ends_;
  std::shared_ptr<Site> site_;
  std::string owner_;
};

}  // namespace longhaul::http
