// SPDX-License-Identifier: Apache-2.0
// The stream of a flow, until the flow releases it: updates the flow's record from it, and its features.
// lan_side.h is the other side; linked_flow.h reads and writes the stream.
#pragma once
#include "proxy/flows/flow_table.h"
#include "proxy/link/io/peer_link.h"

namespace longhaul::flows {

class WanSide {
 public:
  // `link` and `record` outlive this object, `stream` lives until release().
  WanSide(link::PeerLink& link, link::Stream& stream, FlowRecord& record)
      : link_(link), stream_(&stream), record_(record) {}

  link::PeerLink& link() const { return link_; }
  link::Stream* stream() const { return stream_; }  // null after release()
  void kick() { link_.kick(); }
  link::Duration round_trip() const { return link_.session().liveness().smoothed_rtt(); }

  // Copies the stream's counters into the record.
  void count();
  // The same for the last time, when the flow has ended: includes bytes that are still to be sent.
  void count_everything();
  void release();

  // ---- Features.
  void on_features();  // the features have changed
  // From the next block on, nothing of the flow may be stored in a dictionary.
  void keep_private();
  bool is_private() const { return is_private_; }

 private:
  void leave_dictionaries();

  link::PeerLink& link_;
  link::Stream* stream_;
  FlowRecord& record_;
  bool is_private_ = false;
};

}  // namespace longhaul::flows
