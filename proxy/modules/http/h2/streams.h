// SPDX-License-Identifier: Apache-2.0
// Two HTTP/2 connections, with the client and with the server, and the requests between them: each is
// answered from the store, asked about, or passed on with its content, whatever the streams are called on
// either side.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "proxy/modules/counters.h"
#include "proxy/modules/http/h2/ahead.h"
#include "proxy/modules/http/h2/session.h"
#include "proxy/modules/http/incoming.h"
#include "proxy/modules/http/place.h"
#include "proxy/modules/http/prefetch/receiving.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/http/stored_answer.h"

namespace longhaul::http::h2 {

class Streams {
 public:
  using TimePoint = link::TimePoint;
  static constexpr std::uint32_t kMostStreams = 128;
  // What may be under way without being read: uploads, which wait here for the server; responses, which wait
  // for the client. A server that is asked for more than one is slower than 4 MiB in a round trip of the line
  // is rare.
  static constexpr std::int32_t kUpWindow = 256 << 10, kAllUpWindow = 1 << 20;
  static constexpr std::int32_t kDownWindow = 4 << 20, kAllDownWindow = 16 << 20;
  // Streams that end with an error: at once, and in each second.
  static constexpr unsigned kMostResets = 1000, kResetsPerSecond = 100;

  // Informational responses (1xx) before one response: how many, and of what size together. Indexed fields make a
  // thousand times as much of few bytes.
  static constexpr unsigned kMostInformed = 8;
  static constexpr std::size_t kMostInformedBytes = Session::kMostBlockBytes;

  // Towards a server on the LAN: enough for its full rate.
  static constexpr std::int32_t kLanWindow = 1 << 20, kAllLanWindow = 4 << 20;

  // For the near half, which answers from the store and from pushed objects.
  Streams(const Place& place, std::shared_ptr<Site> site, Receiving& receiving);
  // For the far half, which prefetches; its client is the near half, or the browser if the near half has stepped aside.
  Streams(const Place& place, std::shared_ptr<Site> site, Ahead& ahead);

  // First of all: the server has not heard anything from the client. Or: it has this, which are whole frames.
  // False: that cannot be continued, and nothing has been said to anybody.
  void begin();
  bool take_over(TimePoint now, Bytes at_server);

  // False: with that one, no more can be said or heard.
  bool from_client(TimePoint now, Bytes bytes);
  bool from_server(TimePoint now, Bytes bytes);
  // Checks whether objects that requests wait for have arrived.
  void look(TimePoint now);
  bool waits() const { return !waiting_.empty(); }
  // Appends what is to be sent.
  void to_client(Buffer& out, std::size_t enough);
  void to_server(Buffer& out, std::size_t enough);

  void use_disk(bool on) { uses_disk_ = on; }  // off: what is stored stays in memory
  void use_store(bool on);  // off: no request is answered here, and the client is asked to connect anew
  void drop_pending();      // does not store what is coming, nor parse it for prefetch
  void server_ended();
  void client_ended() { server_.terminate(errors::none); }
  // After output: a server with which nothing can be said any more is one that has ended.
  void review();
  // Nothing more can come to the client.
  bool is_over() const;

  // Of responses, which wait for the client; of everything else.
  std::size_t queued_bytes() const { return static_cast<std::size_t>(down_bytes_); }
  std::size_t state_bytes() const;
  const modules::Counters& counters() const { return counters_; }

 private:
  struct Exchange {
    StreamId client = 0, server = 0;     // 0: none, or over
    std::optional<RequestHead> request;  // nothing: not for the cache
    std::string key;
    Fields block;        // the client's, as long as it may have to be said again
    bool asks = false;   // with content
    bool is_tunnel = false;  // CONNECT, extended or not
    Object asked_about;  // a condition was added for it
    DiskWait disk_wait;
    std::uint64_t erasures = 0;
    std::size_t bytes = 0;
    unsigned informed = 0;  // 1xx that have passed
    std::size_t informed_bytes = 0;
    bool is_refused = false;  // its response: the server's stream is being reset
    Source up, down;
    bool responded = false, is_from_store = false, end_sent = false;
    std::optional<Incoming> incoming;
    std::optional<Fetching::Document> document;  // at the far half
  };
  class FromClient final : public SessionUser {
   public:
    explicit FromClient(Streams& all) : all_(all) {}
    void on_headers(StreamId stream, Fields block, bool ends) override;
    void on_data(StreamId stream, Bytes bytes) override;
    void on_end(StreamId stream) override;
    void on_closed(StreamId stream, std::uint32_t error) override;
    void on_goaway() override {}
    void on_sent(StreamId stream, std::size_t bytes) override;
    void on_end_sent(StreamId stream) override;

   private:
    Streams& all_;
  };
  class FromServer final : public SessionUser {
   public:
    explicit FromServer(Streams& all) : all_(all) {}
    void on_headers(StreamId stream, Fields block, bool ends) override;
    void on_data(StreamId stream, Bytes bytes) override;
    void on_end(StreamId stream) override;
    void on_closed(StreamId stream, std::uint32_t error) override;
    void on_goaway() override { all_.client_.say_goodbye(); }
    void on_sent(StreamId stream, std::size_t bytes) override;
    void on_end_sent(StreamId) override {}

   private:
    Streams& all_;
  };
  friend class FromClient;
  friend class FromServer;

  Exchange* of_client(StreamId stream);
  Exchange* of_server(StreamId stream);
  void open(StreamId stream, Fields block, bool ends);
  bool answer_here(Exchange& exchange);
  bool answer_from_store(Exchange& exchange, const Object& object);
  bool answer_from_pushed(Exchange& exchange);
  void send(Exchange& exchange, const Object& object, std::string_view note);
  void send_content(Exchange& exchange, const Stored& object, Part part, const Fields& block);
  void ask(Exchange& exchange);
  void inform(Exchange& exchange, const Fields& block);
  void take_response(Exchange& exchange, const Fields& block, bool ends);
  void take_not_modified(Exchange& exchange, const ResponseHead& response, bool ends);
  void store_if_whole(Exchange& exchange);
  void forget_down(Exchange& exchange);
  void leave(Exchange& exchange, StreamId server);
  void settle(Exchange& exchange);
  void count_reset();
  void offer_tunnels();
  void reset_client(Exchange& exchange, std::uint32_t error);
  void reset_server(Exchange& exchange, std::uint32_t error);

  const Place& place_;
  std::shared_ptr<Site> site_;
  Receiving* receiving_ = nullptr;  // near
  Ahead* ahead_ = nullptr;          // far
  std::vector<StreamId> waiting_;   // requests of the client that wait for objects
  TimePoint now_{};
  bool is_on_ = true, uses_disk_ = true, is_late_ = false, server_gone_ = false;
  FromClient from_client_{*this};
  FromServer from_server_{*this};
  Session client_{Session::Role::server, from_client_};
  Session server_{Session::Role::client, from_server_};
  std::map<StreamId, std::unique_ptr<Exchange>> exchanges_;  // by the client's stream
  std::map<StreamId, Exchange*> by_server_;
  // Streams of tunnels to be reset after what was received on them before.
  std::vector<std::pair<StreamId, std::uint32_t>> resets_down_, resets_up_;
  bool offers_tunnels_ = false;
  std::uint64_t down_bytes_ = 0, up_bytes_ = 0;  // in sources; down without those of the store
  std::size_t exchanges_bytes_ = 0;
  double resets_left_ = kMostResets;
  TimePoint resets_at_{};
  modules::Counters counters_;
};

}  // namespace longhaul::http::h2
