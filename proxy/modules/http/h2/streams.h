// SPDX-License-Identifier: Apache-2.0
// Two HTTP/2 connections, with the client and with the server, and the requests between them: each is
// answered from the store, asked about, or passed on with its content, whatever the streams are called on
// either side.
#pragma once
#include <memory>

#include "proxy/modules/http/h2/ahead.h"
#include "proxy/modules/http/h2/content.h"
#include "proxy/modules/http/h2/exchanges.h"
#include "proxy/modules/http/h2/local_answers.h"
#include "proxy/modules/http/h2/requests.h"
#include "proxy/modules/http/h2/reset_allowance.h"
#include "proxy/modules/http/h2/session.h"
#include "proxy/modules/http/h2/tunnel_resets.h"

namespace longhaul::http::h2 {

class Streams {
 public:
  using TimePoint = link::TimePoint;
  static constexpr std::uint32_t kMostStreams = Requests::kMostStreams;
  // What may be under way without being read: uploads, which wait here for the server; responses, which wait
  // for the client. Those of responses grow while the client reads at once.
  static constexpr std::int32_t kUpWindow = 256 << 10, kAllUpWindow = 1 << 20;
  static constexpr std::int32_t kDownWindow = 4 << 20, kAllDownWindow = 16 << 20;
  static constexpr Content::Most kMostDown{.stream = 16 << 20, .together = 32 << 20};
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
  void look(TimePoint now) {
    now_ = now;
    requests_.look(now);
  }
  bool waits() const { return requests_.waits(); }
  // Appends what is to be sent.
  void to_client(Buffer& out, std::size_t enough);
  void to_server(Buffer& out, std::size_t enough);

  void use_disk(bool on) { answers_.use_disk(on); }  // off: what is stored stays in memory
  void use_store(bool on);  // off: no request is answered here, and the client is asked to connect anew
  void drop_pending();      // does not store what is coming, nor parse it for prefetch
  void server_ended();
  void client_ended() { server_.terminate(errors::none); }
  // After output: a server with which nothing can be said any more is one that has ended.
  void review();
  // Nothing more can come to the client.
  bool is_over() const;

  // Of responses, which wait for the client; of everything else.
  std::size_t queued_bytes() const { return content_.down_bytes(); }
  std::size_t state_bytes() const { return exchanges_.memory_bytes() + content_.up_bytes(); }
  const modules::Counters& counters() const { return answers_.counters(); }

 private:
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

  void inform(Exchange& exchange, const Fields& block);
  void take_response(Exchange& exchange, const Fields& block, bool ends);
  void take_not_modified(Exchange& exchange, const ResponseHead& response, bool ends);
  void store_if_whole(Exchange& exchange);
  void settle(Exchange& exchange);
  void count_reset();
  void offer_tunnels();

  LocalAnswers answers_;
  Ahead* ahead_ = nullptr;  // far
  TimePoint now_{};
  FromClient from_client_{*this};
  FromServer from_server_{*this};
  Session client_{Session::Role::server, from_client_};
  Session server_{Session::Role::client, from_server_};
  Exchanges exchanges_;
  Content content_;
  Requests requests_;
  TunnelResets resets_down_{client_}, resets_up_{server_};
  bool offers_tunnels_ = false;
  ResetAllowance resets_;
};

}  // namespace longhaul::http::h2
