// SPDX-License-Identifier: Apache-2.0
// The stream of a flow, until the flow releases it: what the flow's record counts of it, and the features
// that it uses. lan_side.h is the other side; linked_flow.h reads and writes the stream.
#pragma once
#include "proxy/flows/flow_table.h"
#include "proxy/link/io/peer_link.h"

namespace longhaul::flows {

class WanSide {
 public:
  // All outlive this object, the stream until release().
  WanSide(link::PeerLink& link, link::Stream& stream, FlowRecord& record)
      : link_(link), stream_(&stream), record_(record) {}

  link::PeerLink& link() const { return link_; }
  link::Stream* stream() const { return stream_; }  // none after release()
  void kick() { link_.kick(); }
  link::Duration round_trip() const { return link_.session().liveness().smoothed_rtt(); }

  // Copies the stream's counters into the record.
  void count();
  // The same for the last time, as the flow has ended: bytes that are still to be sent count, too.
  void count_everything();
  void release();

  // ---- Features.
  void on_features();  // they have changed
  // Nothing of the flow may go into a dictionary, from what is encoded next.
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
