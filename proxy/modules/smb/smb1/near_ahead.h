// SPDX-License-Identifier: Apache-2.0
// The near half's data fetched in advance for its client: file data (near_reads.h), entries of searches
// (near_searches.h), responses to queries (near_questions.h) and open handles (near_looks.h). This file
// determines what makes which of them void: requests of this client, lost oplocks, changes by others, silence
// of the far half.
#pragma once
#include <memory>
#include <optional>

#include "proxy/modules/smb/smb1/near_looks.h"
#include "proxy/modules/smb/smb1/near_questions.h"
#include "proxy/modules/smb/smb1/near_reads.h"
#include "proxy/modules/smb/smb1/near_searches.h"

namespace longhaul::smb::smb1 {

class NearAhead {
 public:
  // The references outlive this object.
  NearAhead(Outputs& out, Connection& connection, const LocalAnswers& local, const Promises& promises,
            modules::Counters& counters, std::shared_ptr<AheadAccount> account)
      : connection_(connection),
        local_(local),
        counters_(counters),
        reads_(out, connection, local, promises, counters, std::move(account)),
        searches_(out, connection, counters),
        questions_(out, connection, promises, counters),
        looks_(out, connection) {}

  void on_surroundings();

  // ---- requests of the client that are not chained; true: it was answered, is held, or was passed on

  bool read(TimePoint now, const Frame& frame, const Message& message);
  bool search_or_query(TimePoint now, const Frame& frame, const Message& message);
  // An open for attributes: returns the server's response to an equal one, for this client.
  std::optional<Slice> look(TimePoint now, const Message& message);
  // The request opens a file, and is about to be passed on.
  void opening(const Message& message) { questions_.opening(message, questions_may_be_answered()); }

  // ---- requests and responses that make data void

  // For every request, before any part processes it.
  void before_request(const Message& message) { questions_.before_request(message); }
  // A CLOSE of this file has arrived.
  void closing(const Open& open);
  // The request is passed on, and was not answered here.
  void passes(const Message& message);
  // A WRITE of this open is about to be promised.
  void written(const Open& open);
  // The server's response, before the connection forgets the request; `request` is null if it is unknown.
  void before_answer(TimePoint now, const Message& answer, const Pending* request);
  // After that, if it was the last part of the response.
  void after_answer(const Pending& request);
  // The request with this number was answered; `open` is null if no open is tracked.
  void opened(const Open* open, MessageNumber by);
  void forget(const OpenKey& open);

  // ---- other events that make data void

  // Its oplock is returned.
  void given_up(const Open& open);
  // Its oplock was broken, or others have changed the file: the far half has dropped its data.
  void changed_by_others(const OpenKey& open);
  // Reports of the far half do not arrive.
  void unheard();

  // ---- the far half's messages

  void pushed(TimePoint now, const Ahead& ahead, const Slice& attached) {
    reads_.pushed(now, ahead, attached);
  }
  void pushed(TimePoint now, const Answer& answer, const Slice& attached);
  void far_dropped(const Drop& drop);

  const NearReads& reads() const { return reads_; }
  // Whether no request of the client waits here.
  bool is_idle() const { return reads_.is_idle() && searches_.is_idle() && questions_.is_idle(); }
  std::size_t held_bytes() const {
    return reads_.held_bytes() + searches_.held_bytes() + questions_.held_bytes() + looks_.held_bytes();
  }

 private:
  NearQuestions::Answers questions_may_be_answered() const {
    return local_.may(&Features::metadata) ? NearQuestions::Answers::yes : NearQuestions::Answers::no;
  }
  void questions_changed(const Open* meant);

  Connection& connection_;
  const LocalAnswers& local_;
  modules::Counters& counters_;
  NearReads reads_;
  NearSearches searches_;
  NearQuestions questions_;
  NearLooks looks_;
};

}  // namespace longhaul::smb::smb1
