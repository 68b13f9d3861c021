// SPDX-License-Identifier: Apache-2.0
// Logs the end of a flow, over the link or bypassing it.
#pragma once
#include "proxy/flows/flow_table.h"
#include "proxy/log/log.h"

namespace longhaul::flows {

inline void log_end(const FlowRecord& record, FlowTable::End end) {
  log::debug("flow_end", {{"flow", record.id},
                          {"how", end == FlowTable::End::closed ? "closed" : "reset"},
                          {"lan_in", record.bytes.lan_in},
                          {"lan_out", record.bytes.lan_out},
                          {"wan_in", record.bytes.wan_in},
                          {"wan_out", record.bytes.wan_out}});
}

}  // namespace longhaul::flows
