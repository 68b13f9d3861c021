// SPDX-License-Identifier: Apache-2.0
// Maps names to fields, and works out the queue from both directions.
#include "tools/wan/settings.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <cmath>
#include <vector>

#include "tools/wan/units.h"

namespace longhaul::wan {

using namespace std::chrono_literals;

const std::array<SettingName, 13> kSettingNames{{
    {"rate", "IP bits per second, e.g. 51.84mbit; or unlimited"},
    {"delay", "one-way delay, e.g. 50ms"},
    {"jitter", "the delay varies by up to plus or minus this much (uniform); order is kept"},
    {"loss", "share of packets lost, independently, e.g. 0.01 or 1%"},
    {"burst-loss", "Gilbert-Elliott: ENTER,LEAVE[,LOSS_BAD[,LOSS_GOOD]], e.g. 0.001,0.25; or off"},
    {"reorder", "share of packets delayed while others pass, and for how long: SHARE[,TIME]"},
    {"duplicate", "share of packets delivered twice"},
    {"corrupt", "share of packets with one bit of the TCP or UDP payload flipped and a valid checksum"},
    {"queue", "queue limit: bytes (64KiB), time (20ms), multiples of rate x RTT (2bdp), or auto"},
    {"aqm", "queue management: codel, fq_codel, pie[,TARGET[,INTERVAL]], red, or off (drop-tail)"},
    {"ecn", "on: the queue management marks ECN-capable packets instead of dropping them; or off"},
    {"policer", "token bucket before the queue: RATE,BURST, e.g. 20mbit,64KiB; or off"},
    {"cut", "on: drop all packets, as in an outage; or off"},
}};

namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Parsed<std::optional<BurstLoss>> parse_burst_loss(std::string_view text) {
  if (text == "off" || text == "0") return std::optional<BurstLoss>{};
  const auto parts = split(text);
  if (parts.size() < 2 || parts.size() > 4)
    return std::string("burst-loss takes ENTER,LEAVE[,LOSS_BAD[,LOSS_GOOD]] or off");
  BurstLoss model;
  const std::array<double*, 4> fields{&model.enter, &model.leave, &model.loss_bad, &model.loss_good};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto share = parse_share(parts[i]);
    if (!share) return share.error();
    *fields[i] = *share;
  }
  if (model.leave == 0 && model.enter > 0) return std::string("burst-loss would never leave the bad state");
  return std::optional<BurstLoss>{model};
}

Parsed<std::optional<AqmConfig>> parse_aqm(std::string_view text) {
  if (text == "off") return std::optional<AqmConfig>{};
  const auto parts = split(text);
  for (const auto kind :
       {AqmConfig::Kind::codel, AqmConfig::Kind::fq_codel, AqmConfig::Kind::pie, AqmConfig::Kind::red}) {
    if (parts[0] != name_of(kind)) continue;
    AqmConfig config{.kind = kind};
    const bool is_codel = kind == AqmConfig::Kind::codel || kind == AqmConfig::Kind::fq_codel;
    const std::size_t most = is_codel ? 3 : kind == AqmConfig::Kind::pie ? 2 : 1;
    if (parts.size() > most)
      return std::string(name_of(kind)) + (most == 3   ? " takes TARGET and INTERVAL"
                                           : most == 2 ? " takes TARGET"
                                                       : " takes no values");
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const auto time = parse_duration(parts[i]);
      if (!time) return time.error();
      if (*time == Duration{0}) return std::string(name_of(kind)) + "'s times must be more than 0";
      (i == 1 ? config.target : config.interval) = *time;
    }
    return std::optional<AqmConfig>{config};
  }
  return "\"" + std::string(text) + "\" is not codel, fq_codel, pie, red or off";
}

Parsed<std::optional<Policer>> parse_policer(std::string_view text) {
  if (text == "off") return std::optional<Policer>{};
  const auto parts = split(text);
  if (parts.size() != 2) return std::string("policer takes RATE,BURST or off");
  const auto rate = parse_rate(parts[0]);
  if (!rate) return rate.error();
  const auto burst = parse_bytes(parts[1]);
  if (!burst) return burst.error();
  // A bucket smaller than a packet passes none of that size.
  if (*rate == 0 || *burst < 1500)
    return std::string("a policer needs a rate, and a burst of at least 1500 bytes");
  return std::optional<Policer>{Policer{*rate, *burst}};
}

Parsed<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return "\"" + std::string(text) + "\" is not on or off";
}

Parsed<QueueSize> parse_queue(std::string_view text) {
  if (text == "auto") return QueueSize{};
  const auto quantity = parse_quantity(text);
  if (quantity && quantity->unit == "bdp") {
    if (quantity->number > 1000) return "a queue of " + std::string(text) + " is more than 1000bdp";
    return QueueSize{QueueSize::Unit::round_trips, quantity->number, std::string(text)};
  }
  const auto time = parse_duration(text);
  if (time && quantity && !quantity->unit.empty())
    return QueueSize{QueueSize::Unit::time, std::chrono::duration<double>(*time).count(), std::string(text)};
  const auto bytes = parse_bytes(text);
  if (bytes) return QueueSize{QueueSize::Unit::bytes, static_cast<double>(*bytes), std::string(text)};
  return "\"" + std::string(text) + "\" is not a queue size, such as 64KiB, 20ms, 2bdp or auto";
}

// Sets one field from a parsed value, or passes the parser's sentence on.
template <class T, class Field>
std::optional<std::string> store(Parsed<T>&& parsed, Field& field) {
  if (!parsed) return std::move(parsed).error();
  field = *std::move(parsed);
  return std::nullopt;
}

std::optional<std::string> apply(DirectionSettings& direction, std::string_view name,
                                 std::string_view value) {
  if (name == "rate") return store(parse_rate(value), direction.line.rate_bits);
  if (name == "delay") return store(parse_duration(value), direction.line.delay);
  if (name == "jitter") return store(parse_duration(value), direction.line.jitter);
  if (name == "loss") return store(parse_share(value), direction.line.loss);
  if (name == "burst-loss") return store(parse_burst_loss(value), direction.line.burst_loss);
  if (name == "duplicate") return store(parse_share(value), direction.line.duplicate);
  if (name == "corrupt") return store(parse_share(value), direction.line.corrupt);
  if (name == "queue") return store(parse_queue(value), direction.queue);
  if (name == "aqm") return store(parse_aqm(value), direction.line.aqm);
  if (name == "ecn") return store(parse_switch(value), direction.ecn);
  if (name == "policer") return store(parse_policer(value), direction.line.policer);
  if (name == "cut") return store(parse_switch(value), direction.line.cut);
  if (name == "reorder") {
    const auto parts = split(value);
    if (parts.size() > 2) return "reorder takes SHARE[,TIME]";
    std::optional<Duration> by;
    if (parts.size() == 2)
      if (auto error = store(parse_duration(parts[1]), by)) return error;
    if (auto error = store(parse_share(parts[0]), direction.line.reorder)) return error;
    direction.reorder_by = by;
    return std::nullopt;
  }
  return "unknown setting \"" + std::string(name) + "\"";
}

LinkConfig resolve(const DirectionSettings& direction, Duration round_trip) {
  constexpr double kLargePacketBits = 1500 * 8;
  LinkConfig config = direction.line;
  if (config.aqm) config.aqm->ecn = direction.ecn;
  const double rate = static_cast<double>(config.rate_bits);
  const double bdp_bytes = rate / 8 * std::chrono::duration<double>(round_trip).count();
  double bytes = direction.queue.amount;
  switch (direction.queue.unit) {
    case QueueSize::Unit::bytes:
      break;
    case QueueSize::Unit::automatic:
      bytes = std::max(64. * 1024, bdp_bytes);
      break;
    // A queue worked out from the line holds two large packets at least, or no sender could fill the line.
    case QueueSize::Unit::time:
      bytes = std::max(3000., rate / 8 * bytes);
      break;
    case QueueSize::Unit::round_trips:
      bytes = std::max(3000., bdp_bytes * bytes);
      break;
  }
  config.queue_bytes = static_cast<std::uint64_t>(std::llround(bytes));
  const double four_packets = rate > 0 ? 4 * kLargePacketBits / rate : 0;
  config.reorder_by = direction.reorder_by.value_or(std::max<Duration>(
      1ms, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(four_packets))));
  return config;
}

}  // namespace

std::optional<std::string> apply(LineSettings& settings, std::string_view name, std::string_view value) {
  if (name == "seed") {
    const auto quantity = parse_bytes(value);
    if (!quantity) return "\"" + std::string(value) + "\" is not a seed";
    settings.seed = *quantity;
    return std::nullopt;
  }
  constexpr std::string_view kForth = "a-to-b-";
  constexpr std::string_view kBack = "b-to-a-";
  LineSettings changed = settings;
  std::optional<std::string> error;
  if (name.starts_with(kForth)) {
    error = apply(changed.a_to_b, name.substr(kForth.size()), value);
  } else if (name.starts_with(kBack)) {
    error = apply(changed.b_to_a, name.substr(kBack.size()), value);
  } else {
    error = apply(changed.a_to_b, name, value);
    if (!error) error = apply(changed.b_to_a, name, value);
  }
  if (!error) settings = changed;
  return error;
}

LineConfig resolve(const LineSettings& settings) {
  const Duration round_trip = settings.a_to_b.line.delay + settings.b_to_a.line.delay;
  return {resolve(settings.a_to_b, round_trip), resolve(settings.b_to_a, round_trip)};
}

boost::json::object to_json(const LinkConfig& config) {
  const auto millis = [](Duration time) { return std::chrono::duration<double, std::milli>(time).count(); };
  boost::json::object json;
  json["rate_bits"] = config.rate_bits;
  json["delay_ms"] = millis(config.delay);
  json["jitter_ms"] = millis(config.jitter);
  json["loss"] = config.loss;
  if (config.burst_loss)
    json["burst_loss"] = {config.burst_loss->enter, config.burst_loss->leave, config.burst_loss->loss_bad,
                          config.burst_loss->loss_good};
  json["reorder"] = config.reorder;
  json["reorder_by_ms"] = millis(config.reorder_by);
  json["duplicate"] = config.duplicate;
  json["corrupt"] = config.corrupt;
  json["queue_bytes"] = config.queue_bytes;
  json["aqm"] = config.aqm ? name_of(config.aqm->kind) : "off";
  if (config.aqm) {
    json["ecn"] = config.aqm->ecn;
    if (config.aqm->target > 0ns) json["aqm_target_ms"] = millis(config.aqm->target);
    if (config.aqm->interval > 0ns) json["aqm_interval_ms"] = millis(config.aqm->interval);
  }
  if (config.policer)
    json["policer"] = {{"rate_bits", config.policer->rate_bits},
                       {"burst_bytes", config.policer->burst_bytes}};
  json["cut"] = config.cut;
  return json;
}

}  // namespace longhaul::wan
