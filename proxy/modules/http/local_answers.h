// SPDX-License-Identifier: Apache-2.0
// Answers HTTP/1 requests at the near half from pushed objects and from the store, in memory and on disk, after
// a question to the server if necessary. near.h decides when a request may be answered, caching.h with what.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/modules/http/awaited_responses.h"
#include "proxy/modules/http/place.h"
#include "proxy/modules/http/prefetch/receiving.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/http/to_client.h"

namespace longhaul::http {

class LocalAnswers {
 public:
  using TimePoint = modules::TimePoint;
  enum class Allowed : std::uint8_t {
    nothing,
    question,  // responses to earlier requests are pending: a condition may be added, but nothing answered
    answer,
  };
  struct Outcome {
    bool is_answered = false;
    bool closes = false;  // the connection closes after the answer
    Object ask_about;     // stored, but must be validated; null: none
  };

  // `place`, `receiving` and `client` outlive this object.
  LocalAnswers(std::shared_ptr<Site> site, const Place& place, Receiving& receiving, ToClient& client)
      : site_(std::move(site)), place_(place), receiving_(receiving), client_(client) {}

  void use_disk(bool on) { uses_disk_ = on; }
  bool may_have_to_wait() const { return receiving_.may_have_any() || disk(); }
  // Whether the request must wait for an object that is in transit already (a request to the server would
  // cost a round trip), or for the disk. To be called again for the same request until it returns false.
  bool must_wait(TimePoint now, const RequestHead& request);
  // To be called once for each request.
  Outcome take(TimePoint now, const std::string& key, const RequestHead& request, Allowed allowed);
  // Answers with an object that is fresh or was validated. `note`: the value of Cache-Status. Returns whether
  // the connection closes after it.
  bool send(TimePoint now, const RequestHead& request, const Stored& object, std::string_view note);
  // The response 304 to a question of this half: what was asked about, current again, and stored as such
  // unless `stores` is false or it was erased meanwhile. Null: the server speaks of other content, so what
  // was asked about is erased, and the request has to be asked as the client made it.
  Object take_not_modified(TimePoint now, const Awaited& asked, const ResponseHead& response, bool stores);
  const modules::Counters& counters() const { return counters_; }

 private:
  OnDisk* disk() const { return uses_disk_ ? site_->disk.get() : nullptr; }

  std::shared_ptr<Site> site_;
  const Place& place_;
  Receiving& receiving_;
  ToClient& client_;
  DiskWait disk_wait_;  // of the first unanswered request
  bool uses_disk_ = true;
  modules::Counters counters_;
};

}  // namespace longhaul::http
