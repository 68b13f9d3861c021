// SPDX-License-Identifier: Apache-2.0
#include "proxy/export/flow_exporter.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "proxy/log/log.h"

namespace longhaul::exporting {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;
using namespace std::chrono_literals;

namespace {

constexpr auto kTick = 250ms;
constexpr int kTicksToFlush = 4;  // a record waits at most a second for others to share its message
constexpr auto kResend = 60s;     // interval of templates and of look-ups of the collector's name
constexpr auto kRetry = 10s;      // while there is no address
constexpr auto kNameLimit = 10s;
constexpr std::size_t kMostQueued = 1024;    // messages: 1.2 MiB, some 8,000 records
constexpr std::size_t kMostAtOnce = 64;      // messages sent in one turn of the event loop
constexpr std::size_t kMostWalked = 1024;    // live flows examined in one turn

std::uint64_t grown_by(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

// A server known only by name has an address of zeros.
tcp::endpoint server_of(const flows::FlowRecord& record) {
  const auto& to = record.destination;
  if (to.host.empty()) return {to.address, to.port};
  if (record.client.address().is_v4()) return {asio::ip::address_v4::any(), to.port};
  return {asio::ip::address_v6::any(), to.port};
}

}  // namespace

std::uint32_t observation_domain(std::string_view site) {
  std::uint32_t hash = 2'166'136'261;  // FNV-1a
  for (const char c : site) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619;
  return hash == 0 ? 1 : hash;  // 0 means no domain
}

FlowExporter::FlowExporter(asio::io_context& io, Settings settings, const flows::FlowTable& table,
                           net::NameResolver& resolver)
    : io_(io),
      settings_(std::move(settings)),
      table_(table),
      resolver_(resolver),
      socket_(io),
      tick_(io),
      resend_(io),
      templates_(ipfix_templates(settings_.enterprise)) {}

void FlowExporter::begin() {
  asio::co_spawn(io_, keep_address(), asio::detached);
  wait();
}

void FlowExporter::stop() {
  tick_.cancel();
  resend_.cancel();
  const auto now = Clock::now();
  for (const auto& [id, record] : table_.live()) report(record, FlowEnd::forced, now);
  close_message();
  drain();
  socket_ = udp::socket(io_);
}

void FlowExporter::flow_ended(const flows::FlowRecord& record) {
  report(record, FlowEnd::end_detected, Clock::now());
  reported_.erase(record.id);
}

asio::awaitable<void> FlowExporter::keep_address() {
  for (;;) {
    const auto addresses = co_await resolver_.resolve(settings_.to.host, kNameLimit);
    const bool ready = addresses ? connect(*addresses) : socket_.is_open();
    if (!addresses) complain("the name cannot be resolved: " + addresses.error().message());
    templates_due_ = true;
    drain();
    resend_.expires_after(ready ? kResend : kRetry);
    boost::system::error_code stopped;
    co_await resend_.async_wait(asio::redirect_error(asio::use_awaitable, stopped));
    if (stopped) co_return;
  }
}

// Connects to the first address with a route, unless it is the one in use.
bool FlowExporter::connect(const std::vector<asio::ip::address>& addresses) {
  boost::system::error_code error;
  for (const asio::ip::address& address : addresses) {
    const udp::endpoint to(address, settings_.to.port);
    if (socket_.is_open() && to == to_) return true;
    udp::socket socket(io_);
    socket.open(to.protocol(), error);
    if (!error) socket.connect(to, error);
    if (!error) socket.non_blocking(true, error);
    if (error) continue;
    socket_ = std::move(socket);
    waits_for_room_ = false;  // a wait on the old socket ends without calling drain()
    to_ = to;
    return true;
  }
  complain(error.message());
  return socket_.is_open();
}

void FlowExporter::wait() {
  tick_.expires_after(kTick);
  tick_.async_wait([this](boost::system::error_code stopped) {
    if (stopped) return;
    report_long_flows();
    if (++ticks_ % kTicksToFlush == 0) close_message();
    drain();
    wait();
  });
}

// Each flow is examined four times in an active timeout, a few flows in each turn.
void FlowExporter::report_long_flows() {
  const auto& live = table_.live();
  const auto turns = static_cast<std::size_t>(settings_.active_timeout / kTick) / 4;
  const std::size_t share = std::min(live.size() / std::max<std::size_t>(turns, 1) + 1, kMostWalked);
  const auto now = Clock::now();
  auto flow = live.upper_bound(last_seen_);
  for (std::size_t i = 0; i < std::min(share, live.size()); ++i) {
    if (flow == live.end()) flow = live.begin();
    const auto before = reported_.find(flow->first);
    const auto since = before == reported_.end() ? flow->second.started : before->second.until;
    if (now - since >= settings_.active_timeout) report(flow->second, FlowEnd::active_timeout, now);
    last_seen_ = flow->first;
    ++flow;
  }
}

void FlowExporter::report(const flows::FlowRecord& record, FlowEnd end, Clock::time_point now) {
  const auto found = reported_.find(record.id);
  const Reported before = found == reported_.end() ? Reported{{}, record.started} : found->second;
  const flows::FlowBytes& bytes = record.bytes;
  if (end == FlowEnd::active_timeout) {
    if (bytes == before.bytes) return;
    reported_[record.id] = {bytes, now};
  }
  const auto wall = [offset = std::chrono::system_clock::now(), now](Clock::time_point time) {
    return offset - std::chrono::duration_cast<std::chrono::system_clock::duration>(now - time);
  };
  const tcp::endpoint server = server_of(record);
  // Bytes from the LAN, and bytes to the LAN.
  FlowReport away{.flow = record.id,
                  .source = record.far_side ? server : record.client,
                  .destination = record.far_side ? record.client : server,
                  .direction = FlowDirection::ingress,
                  .end = end,
                  .from = wall(before.until),
                  .until = wall(now),
                  .lan_bytes = grown_by(bytes.lan_in, before.bytes.lan_in),
                  .wan_bytes = grown_by(bytes.wan_out, before.bytes.wan_out),
                  .reason = record.reason->code,
                  .peer = record.peer,
                  .server_name = record.destination.host,
                  .module = record.module ? record.module->name : std::string_view()};
  FlowReport home = away;
  std::swap(home.source, home.destination);
  home.direction = FlowDirection::egress;
  home.lan_bytes = grown_by(bytes.lan_out, before.bytes.lan_out);
  home.wan_bytes = grown_by(bytes.wan_in, before.bytes.wan_in);
  add(away);
  add(home);
}

void FlowExporter::add(const FlowReport& report) {
  if (data_.add(report)) return;
  close_message();
  (void)data_.add(report);  // it always fits an empty message
}

void FlowExporter::close_message() {
  const std::uint32_t records = data_.records();
  if (records == 0) return;
  Buffer bytes = data_.take();
  if (queue_.size() < kMostQueued) {
    queue_.push_back({std::move(bytes), records});
    if (queue_.size() == 1) asio::post(io_, [this] { drain(); });
    return;
  }
  counters_.dropped_records += records;
  complain("the queue is full");
}

void FlowExporter::drain() {
  if (!socket_.is_open() || waits_for_room_) return;
  for (std::size_t i = 0; i < kMostAtOnce; ++i) {
    Sent sent = Sent::yes;
    if (templates_due_) {
      sent = send(templates_.message, templates_.data_records);
      if (sent == Sent::yes) templates_due_ = false;
    } else if (!queue_.empty()) {
      Message& next = queue_.front();
      sent = send(next.bytes, next.records);
      if (sent == Sent::yes) {
        counters_.records += next.records;
        queue_.pop_front();
      }
    } else {
      return;
    }
    if (sent == Sent::failed) {
      // Try again at the next tick. A collector that has just started needs the templates before the data.
      templates_due_ = true;
      return;
    }
    if (sent == Sent::not_now) {
      waits_for_room_ = true;
      socket_.async_wait(udp::socket::wait_write, [this](boost::system::error_code error) {
        if (error == asio::error::operation_aborted) return;
        waits_for_room_ = false;
        drain();
      });
      return;
    }
  }
  asio::post(io_, [this] { drain(); });
}

FlowExporter::Sent FlowExporter::send(Buffer& bytes, std::uint32_t data_records) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  write_ipfix_header(bytes, {.export_time = static_cast<std::uint32_t>(std::chrono::floor<std::chrono::seconds>(now).count()),
                             .sequence = sequence_,
                             .domain = settings_.domain});
  boost::system::error_code error;
  socket_.send(asio::buffer(bytes.data(), bytes.size()), 0, error);
  if (error == asio::error::would_block || error == asio::error::try_again) return Sent::not_now;
  if (error) {
    complain(error.message());
    return Sent::failed;
  }
  sequence_ += data_records;
  ++counters_.messages;
  counters_.last_error.clear();
  return Sent::yes;
}

void FlowExporter::complain(const std::string& reason) {
  ++counters_.failures;
  counters_.last_error = reason;
  if (!complaints_.may_write("ipfix", Clock::now())) return;
  log::warn("export_failed", {{"exporter", "ipfix"},
                              {"to", config::to_text(settings_.to)},
                              {"reason", reason},
                              {"dropped_records", counters_.dropped_records}});
}

}  // namespace longhaul::exporting
