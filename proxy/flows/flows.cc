// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/flows.h"

#include "codecs/work.h"

namespace longhaul::flows {
namespace asio = boost::asio;

Flows::Flows(asio::io_context& io, const config::Config& config, config::Features& features, FlowTable& table,
             Dialer& dialer, std::vector<std::unique_ptr<link::PeerLink>>& links, modules::List modules)
    : modules_(modules),
      admission_(config, table,
                 [this](const Crowded& crowded) {
                   if (on_crowded) on_crowded(crowded);
                 }),
      losses_(modules, config.modules),
      paths_(config, features, links, admission_, losses_, unreachable_),
      doubt_([this](const link::PeerLink& link) {
        return link.perhaps_gone() || sweeps_.under_way(Sweeps::Kind::peer_gone, link);
      }),
      linked_(table, admission_, doubt_),
      sweeps_(io, linked_.by_id()),
      bypassing_(io, table, dialer, admission_, paths_, losses_, doubt_,
                 [this](const FlowRecord& record) { tell_refused(record); }),
      near_(io, config, modules, table, admission_, paths_, losses_, linked_, bypassing_,
            [this](const FlowRecord& record) { remember_unreachable(record); }),
      far_(io, config, features, modules, table, dialer, admission_, paths_, losses_, linked_),
      lost_links_(modules, table, paths_, linked_, sweeps_, bypassing_, [this] {
        if (on_doubt_settled) on_doubt_settled();
      }) {}

Flows::~Flows() = default;

void Flows::set_closed(Closed closed) {
  paths_.set_closed(closed);
  spares().start_anew();
  bypassing_.reset_disallowed();
}

void Flows::limits_changed() {
  spares().start_anew();
  admission_.limits_changed();
}

void Flows::remember_unreachable(const FlowRecord& record) {
  unreachable_.remember(record.destination, record.reason, UnreachableServers::Clock::now());
  tell_refused(record);
}

// The client was accepted before the server was connected; its next attempt must receive the server's own
// response.
void Flows::tell_refused(const FlowRecord& record) {
  if (record.origin == Origin::tproxy && on_server_refused && record.destination.host.empty())
    on_server_refused({record.destination.address, record.destination.port});
}

void Flows::apply_features(const link::PeerLink* link) {
  spares().start_anew();
  for (const modules::Listed& module : modules_) module.instance->forget_sessions();
  sweeps_.begin(Sweeps::Kind::apply_features, link,
                [this](FlowId, LinkedFlow& flow) { apply_features_to(flow); });
}

void Flows::apply_features_to(LinkedFlow& flow) {
  FlowRecord& record = flow.record();
  if (record.far_side || !flow.stream() || !flow.link().session_if_any()) return;
  count_work(Sweeps::kWorkPerVisit);
  link::PeerLink& link = flow.link();
  const auto policy = paths_.policy_for(record.client.address(), record.destination);
  config::Features features = config::meet(policy.features, link.session().incoming().peer_allowed());
  // A running flow keeps its path.
  features.transport = record.features.transport;
  if (flow.is_private()) features.dedup_memory = features.dedup_disk = false;
  record.features = features;
  link.session().change_features(flow.stream()->id(), features);
  flow.features_changed();
  link.kick();
}

void Flows::run_modules() {
  sweeps_.begin(Sweeps::Kind::run_modules, nullptr, [](FlowId, LinkedFlow& flow) {
    if (!flow.record().module || flow.record().far_side) return;
    count_work(Sweeps::kWorkPerVisit);
    flow.features_changed();
  });
}

void Flows::cut_all() {
  spares().start_anew();
  linked_.cut_all();
}

}  // namespace longhaul::flows
