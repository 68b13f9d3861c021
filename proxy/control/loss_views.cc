// SPDX-License-Identifier: Apache-2.0
// Lost writes as JSON: how many there were, and the files of a client. Other views are in views.cc.
#include <boost/json/array.hpp>

#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostShown = 100;

json::object view(const modules::LostFile& file) {
  json::array ranges;
  for (const Interval& range : file.ranges) ranges.push_back(json::array{range.begin, range.end});
  return {{"file", file.name}, {"cause", file.cause}, {"ranges", std::move(ranges)}};
}

}  // namespace

json::object view_lost_writes(const Status& status) {
  json::object lost, suspected, reported;
  std::uint64_t forgotten = 0, waiting = 0;
  const auto add = [](json::object& to, const modules::Losses::Count& count) {
    json::value& sum = to[count.first];
    sum = count.second + (sum.is_null() ? 0 : sum.to_number<std::uint64_t>());
  };
  for (const modules::Listed& module : status.modules) {
    const modules::Losses* losses = module.instance->losses();
    if (!losses) continue;
    const auto counts = losses->counts();
    for (const auto& count : counts.lost) add(lost, count);
    for (const auto& count : counts.suspected) add(suspected, count);
    for (const auto& count : counts.reported) add(reported, count);
    forgotten += counts.forgotten;
    waiting += counts.waiting;
  }
  if (lost.empty()) return {};
  return {{"lost", std::move(lost)},
          {"suspected", std::move(suspected)},
          {"reported", std::move(reported)},
          {"forgotten", forgotten},
          {"waiting", waiting}};
}

json::array view_lost_files(const Status& status, const modules::Ends& ends) {
  json::array files;
  for (const modules::Listed& module : status.modules)
    if (const modules::Losses* losses = module.instance->losses())
      for (const modules::LostFile& file : losses->files(ends, kMostShown - files.size()))
        files.push_back(view(file));
  return files;
}

json::array view_told_files(const Status& status, const modules::Ends& ends) {
  json::array files;
  for (const modules::Listed& module : status.modules) {
    const modules::Losses* losses = module.instance->losses();
    if (!losses) continue;
    for (const modules::ToldFile& told : losses->told(ends, kMostShown - files.size())) {
      json::object file = view(told.file);
      file["how"] = told.how;
      file["at_s"] = std::chrono::floor<std::chrono::seconds>(told.at).time_since_epoch().count();
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace longhaul::control
