// SPDX-License-Identifier: Apache-2.0
// Answers requests from the store, its disk and pushed objects, and stores responses of the server. streams.h
// passes all other requests on.
#pragma once
#include <memory>
#include <string_view>
#include <utility>

#include "proxy/modules/counters.h"
#include "proxy/modules/http/h2/exchanges.h"
#include "proxy/modules/http/place.h"
#include "proxy/modules/http/prefetch/receiving.h"
#include "proxy/modules/http/site.h"

namespace longhaul::http::h2 {

class LocalAnswers {
 public:
  using TimePoint = link::TimePoint;
  // `receiving` is null at the far half, which answers and stores nothing. `place` and `receiving` outlive
  // this.
  LocalAnswers(const Place& place, std::shared_ptr<Site> site, Receiving* receiving)
      : place_(place), site_(std::move(site)), receiving_(receiving), is_on_(receiving != nullptr) {}

  void use(bool on) { is_on_ = on; }
  bool is_used() const { return is_on_; }
  void use_disk(bool on) { uses_disk_ = on; }  // off: responses are stored in memory only

  // To be called first for each new request.
  void begin(Exchange& exchange) const;
  // For requests without content, before anything is sent to the server.
  enum class Found : std::uint8_t {
    answer,   // `block`, and the exchange's `down` has the content
    later,    // an object is in transit: call again
    nothing,  // to be sent to the server, with a condition if Exchange::asked_about is set
  };
  Found find(TimePoint now, Exchange& exchange, Fields& block);

  // For each response of the server: invalidates what it changes, and starts to store it if allowed.
  void note(const Exchange& exchange, const ResponseHead& response) const;
  void begin_to_store(TimePoint now, Exchange& exchange, const ResponseHead& response) const;
  // The 304 to a condition that this half added. Found::nothing: the client's request must be sent unchanged.
  Found take_not_modified(TimePoint now, Exchange& exchange, const ResponseHead& response, Fields& block);

  const modules::Counters& counters() const { return counters_; }

 private:
  bool answer_from_store(TimePoint now, Exchange& exchange, const Object& object, Fields& block);
  Fields answer(TimePoint now, Exchange& exchange, const Stored& object, std::string_view note);

  const Place& place_;
  std::shared_ptr<Site> site_;
  Receiving* receiving_;
  bool is_on_, uses_disk_ = true;
  modules::Counters counters_;
};

}  // namespace longhaul::http::h2
