// SPDX-License-Identifier: Apache-2.0
// The far half for SMB2 and SMB3: keeps the server's leg in order (ids, credits, our own requests and their
// answers) and asks its parts what to add, hold and keep: far_order.h (ordering points), far_metadata.h,
// far_reads.h.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class Far final : public Half, private FarSide {
 public:
  explicit Far(Outputs& out);

  void frame_from_lan(TimePoint now, const Frame& frame) override;
  void frame_from_stream(TimePoint now, const Frame& frame) override;
  void from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void lan_opaque(TimePoint now) override;
  void stream_opaque(TimePoint now) override;
  bool quiet() const override;
  flows::Reason leave_alone() const override;
  void on_surroundings(TimePoint now, const modules::Surroundings& surroundings) override;
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  const modules::Counters& counters() const override { return counters_; }

 private:
  Connection& connection() override { return connection_; }
  Outputs& out() override { return out_; }
  modules::Counters& counters() override { return counters_; }
  const modules::Surroundings& surroundings() const override { return surroundings_; }
  bool inject(TimePoint now, SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
              Reply reply) override;
  bool can_inject(std::uint16_t charge) const override;
  void send(TimePoint now, const Message& message) override;
  void drop(TimePoint now, const Open& open) override;

  Outputs& out_;
  modules::Counters counters_;
  modules::Surroundings surroundings_;
  Connection connection_;
  MessageIds ids_;
  std::unordered_map<MessageId, Reply> own_;     // by the server's number
  std::vector<std::unique_ptr<FarPart>> parts_;  // in the order in which requests are offered
};

}  // namespace longhaul::smb::smb2
