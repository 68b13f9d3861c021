// SPDX-License-Identifier: Apache-2.0
// A module to begin a new one with. Its protocol is lines: the server greets with one, or refuses the client with one that
// begins with "-"; then it answers each of the client's lines with one, in order. The answer to `version` is always the
// greeting, so the near half gives it.
#pragma once
#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "codecs/byte_writer.h"
#include "proxy/modules/twin/framed_module.h"

namespace longhaul::lines {

// Of the messages between the halves, and of the features: another one is another module.
inline constexpr std::uint64_t kModuleVersion = 1;

namespace reasons {
inline constexpr modules::ReasonText lines_not_understood{
    "lines_not_understood",
    "The flow is deduplicated and compressed, but a line is too long, so round trips are no longer saved.",
    "none needed"};
inline constexpr std::array kAll{&lines_not_understood};
}  // namespace reasons

// ---- parsing

struct Frame {
  Slice bytes;  // with the end of the line
};

// Longer lines make the connection opaque, so that no more than this is held.
inline constexpr std::size_t kMaxLineBytes = 4096;

// In any pieces. Each byte is looked at once.
class Splitter {
 public:
  void push(Slice piece) { append(bytes_, piece.bytes()); }
  Result<std::optional<Frame>> next();
  std::vector<Slice> take_rest();
  std::size_t held_bytes() const { return bytes_.size() - begin_; }

 private:
  Buffer bytes_;
  std::size_t begin_ = 0, searched_ = 0;
};

// ---- what the halves tell each other

// Far to near, behind the greeting: it is one. A message stands behind a frame, never before the first: the twin has no
// half until then.
struct Greeting {
  std::uint64_t bytes = 0;
  static constexpr auto kFields = std::make_tuple(&Greeting::bytes);
};
using Message = std::variant<Greeting>;
using Outputs = twin::Outputs<Message>;

// ---- what they decide

using link::TimePoint;

// What both halves do alike: they hold nothing back and owe nothing, so ends cross as they come.
class Half : public twin::Half<Frame, Message> {
 public:
  explicit Half(Outputs& out) : out_(out) {}
  void lan_ended(TimePoint, modules::Ending ending) override;
  void stream_ended(TimePoint, modules::Ending ending) override;
  void twin_lost() override {}
  void lan_opaque(TimePoint) override {}
  // What the twin sends passes without this half from here on, so it may answer nothing any more.
  void stream_opaque(TimePoint) override { is_opaque_ = true; }
  bool quiet() const override { return true; }
  modules::Reason leave_alone() const override { return {}; }
  void on_surroundings(TimePoint, const modules::Surroundings& told) override {
    is_on_ = told.features.modules.value("lines") != 0;
  }
  void on_timeout(TimePoint) override {}
  std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
  const modules::Counters& counters() const override { return counters_; }

 protected:
  Outputs& out_;
  bool is_on_ = false;
  bool is_opaque_ = false;
  modules::Counters counters_;
};

class Near final : public Half {
 public:
  using Half::Half;
  void frame_from_lan(TimePoint now, const Frame& request) override;
  void frame_from_stream(TimePoint now, const Frame& answer) override;
  void from_twin(TimePoint now, const Message& message, const Slice& attached) override;

 private:
  Slice first_line_;              // of the server; empty: it has said nothing yet
  bool is_greeting_ = false;
  std::uint64_t unanswered_ = 0;  // requests that the server is still to answer, and no answer from here may overtake
};

class Far final : public Half {
 public:
  using Half::Half;
  void frame_from_lan(TimePoint now, const Frame& answer) override;
  void frame_from_stream(TimePoint, const Frame& request) override { out_.to_lan(request.bytes); }
  void from_twin(TimePoint, const Message&, const Slice&) override { out_.abort(); }  // the near half says nothing

 private:
  bool greeted_ = false;
};

// What FramedModule asks of a protocol.
class Protocol {
 public:
  using Frame = lines::Frame;
  using Splitter = lines::Splitter;
  using Message = lines::Message;
  using Half = lines::Half;
  static constexpr const modules::ReasonText& kNotUnderstood = reasons::lines_not_understood;

  explicit Protocol(twin::Side side) : side_(side) {}
  Splitter splitter() const { return {}; }
  Result<std::optional<Frame>> next(Splitter& splitter, modules::Way) const { return splitter.next(); }
  bool takes(TimePoint now, const Frame& frame, modules::Way way, Outputs& out, const modules::Surroundings& told);
  Half* half() const { return half_.get(); }
  std::size_t held_bytes() const { return 0; }

 private:
  twin::Side side_;
  std::unique_ptr<Half> half_;
};

using Module = twin::FramedModule<Protocol>;

}  // namespace longhaul::lines
