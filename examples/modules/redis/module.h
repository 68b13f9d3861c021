// SPDX-License-Identifier: Apache-2.0
// Redis transactions: between MULTI and EXEC the server only queues, and answers each command with QUEUED. The near
// half gives that answer, so that a client that waits for each reply waits for the line only at MULTI and EXEC. The
// commands go on to the server, and the far half drops its replies.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <string_view>
#include <variant>

#include "examples/modules/redis/resp.h"
#include "proxy/modules/twin/framed_module.h"

namespace longhaul::redis {

// Of what the halves say to each other, and of the features: another one is another module.
inline constexpr std::uint64_t kModuleVersion = 1;

namespace reasons {
inline constexpr modules::ReasonText redis_not_understood{
    "redis_not_understood",
    "The flow is deduplicated and compressed, but it is not RESP, or a message is larger than 1 MiB, so round trips "
    "are no longer saved.",
    "none needed"};
inline constexpr modules::ReasonText redis_other_mode{
    "redis_other_mode",
    "The flow is deduplicated and compressed, but its client has begun something in which replies no longer follow "
    "requests one by one (publish and subscribe, replication, RESP3), so round trips are no longer saved.",
    "none needed"};
inline constexpr std::array kAll{&redis_not_understood, &redis_other_mode};
}  // namespace reasons

// Near to far: the client has the answer to the request that follows.
struct Answered {
  static constexpr std::tuple<> kFields{};
};
using link::TimePoint;
using Message = std::variant<Answered>;
using Outputs = twin::Outputs<Message>;
using Half = twin::Half<Frame, Message>;

class Near final : public Half {
 public:
  explicit Near(Outputs& out) : out_(out) {}

  void frame_from_lan(TimePoint now, const Frame& request) override;
  void frame_from_stream(TimePoint now, const Frame& reply) override;
  void from_twin(TimePoint, const Message&, const Slice&) override { out_.abort(); }  // the far half says nothing
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_lost() override {}
  void lan_opaque(TimePoint) override {}
  // Replies pass without this half from here on, and none of its own may come among them.
  void stream_opaque(TimePoint) override { other_mode_ = true; }
  bool quiet() const override { return true; }  // what it answered needs nothing more of it
  modules::Reason leave_alone() const override;
  std::size_t state_bytes() const override { return unanswered_.size() * sizeof(Request); }
  void on_surroundings(TimePoint, const modules::Surroundings& told) override {
    is_on_ = told.features.modules.value("redis") != 0;
  }
  void on_timeout(TimePoint) override {}
  std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
  const modules::Counters& counters() const override { return counters_; }

 private:
  enum class Request : std::uint8_t { multi, other };

  Outputs& out_;
  bool is_on_ = false;
  bool other_mode_ = false;
  bool in_transaction_ = false;      // the client has the server's word for it, and has not ended it
  std::deque<Request> unanswered_;   // by the server, whose replies the client will get
  modules::Counters counters_;
};

class Far final : public Half {
 public:
  explicit Far(Outputs& out) : out_(out) {}

  void frame_from_lan(TimePoint now, const Frame& reply) override;
  void frame_from_stream(TimePoint now, const Frame& request) override;
  void from_twin(TimePoint, const Message&, const Slice&) override { next_ = Reply::dropped; }
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_lost() override {}
  void lan_opaque(TimePoint now) override;
  void stream_opaque(TimePoint) override { stream_opaque_ = true; }
  bool quiet() const override { return expected_.empty(); }
  modules::Reason leave_alone() const override;
  std::size_t state_bytes() const override { return expected_.size() * sizeof(Reply); }
  void on_surroundings(TimePoint, const modules::Surroundings&) override {}
  void on_timeout(TimePoint) override {}
  std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
  const modules::Counters& counters() const override { return counters_; }

 private:
  enum class Reply : std::uint8_t { passed_on, dropped };

  bool drops_any() const;

  Outputs& out_;
  Reply next_ = Reply::passed_on;  // of the request that comes next
  std::deque<Reply> expected_;     // of the requests that the server has, in order
  bool stream_opaque_ = false;
  modules::Counters counters_;
};

// What FramedModule asks of a protocol.
class Protocol {
 public:
  using Frame = redis::Frame;
  using Splitter = redis::Splitter;
  using Message = redis::Message;
  using Half = redis::Half;
  static constexpr const modules::ReasonText& kNotUnderstood = reasons::redis_not_understood;

  explicit Protocol(twin::Side side) : side_(side) {}

  Splitter splitter() const { return Splitter(); }
  Result<std::optional<Frame>> next(Splitter& splitter, modules::Way way) const;
  bool takes(TimePoint now, const Frame& frame, modules::Way way, Outputs& out,
             const modules::Surroundings& surroundings);
  Half* half() const { return half_.get(); }
  std::size_t held_bytes() const { return 0; }

 private:
  twin::Side side_;
  std::unique_ptr<Half> half_;
};

using Module = twin::FramedModule<Protocol>;

}  // namespace longhaul::redis
