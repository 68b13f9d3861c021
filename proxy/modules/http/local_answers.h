// SPDX-License-Identifier: Apache-2.0
// HTTP/1 requests that the near half answers: from objects that were pushed, and from the store, in memory
// and on disk, after the server has said that they are current if that is necessary. near.h decides when a
// request may be answered; caching.h, by what.
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
    question,  // the server has earlier requests: it may be asked whether what is stored has changed
    answer,
  };
  struct Outcome {
    bool is_answered = false;
    bool closes = false;  // the connection, after the answer
    Object ask_about;     // stored, but only the server can say whether it is current; null: none
  };

  // `place`, `receiving` and `client` outlive this object.
  LocalAnswers(std::shared_ptr<Site> site, const Place& place, Receiving& receiving, ToClient& client)
      : site_(std::move(site)), place_(place), receiving_(receiving), client_(client) {}

  void use_disk(bool on) { uses_disk_ = on; }
  bool may_have_to_wait() const { return receiving_.may_have_any() || disk(); }
  // For an announced object: it is being fetched already, and a request to the server would cost a round
  // trip. Or for the disk. Called again for the same request until it is false.
  bool must_wait(TimePoint now, const RequestHead& request);
  // Once for each request.
  Outcome take(TimePoint now, const std::string& key, const RequestHead& request, Allowed allowed);
  // Answers with the object, which is current. `note`: what Cache-Status says. True: the connection closes
  // after it.
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
  DiskWait disk_wait_;  // of the first request that is not answered yet
  bool uses_disk_ = true;
  modules::Counters counters_;
};

}  // namespace longhaul::http
