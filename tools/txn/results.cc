// SPDX-License-Identifier: Apache-2.0
// Figures, table, CSV and JSON.
#include "tools/txn/results.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace longhaul::txn {
namespace {

constexpr double kNsPerMs = 1e6;

std::string decimal(double value, int places) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(places) << value;
  return text.str();
}

// Four digits that mean something.
std::string rounded(double value) {
  return decimal(value, value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3);
}

std::string window_text(const Workload& workload) {
  return workload.window_bytes ? std::to_string(workload.window_bytes) : "kernel's";
}

void print_aligned(const std::vector<std::vector<std::string>>& lines, std::ostream& out) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i)
      out << (i ? "  " : "") << (i < 2 ? std::left : std::right) << std::setw(static_cast<int>(widths[i]))
          << line[i];
    out << '\n';
  }
}

boost::json::object json_of(const Figures& figures) {
  boost::json::object response;
  response["mean"] = figures.response_ms.mean;
  response["deviation"] = figures.response_ms.deviation;
  response["least"] = figures.response_ms.least;
  response["median"] = figures.response_ms.median;
  response["p95"] = figures.response_ms.p95;
  response["p99"] = figures.response_ms.p99;
  response["most"] = figures.response_ms.most;
  boost::json::object json;
  json["transactions"] = figures.transactions;
  json["seconds"] = figures.seconds;
  json["response_ms"] = std::move(response);
  json["mbit_per_s"] = figures.megabits_per_second;
  json["transactions_per_s"] = figures.transactions_per_second;
  json["datagrams_sent_again"] = figures.counts.sent_again;
  json["timeouts"] = figures.counts.timeouts;
  json["negative_acknowledgements"] = figures.counts.negatives;
  return json;
}

}  // namespace

Figures figures_of(const std::vector<PairResult>& pairs, const Workload& workload) {
  Figures figures;
  std::vector<double> times;
  for (const PairResult& pair : pairs) {
    for (const auto ns : pair.measured.response_ns) times.push_back(static_cast<double>(ns) / kNsPerMs);
    figures.seconds = std::max(figures.seconds, static_cast<double>(pair.measured.elapsed_ns) / 1e9);
    figures.counts.sent_again += pair.measured.counts.sent_again;
    figures.counts.timeouts += pair.measured.counts.timeouts;
    figures.counts.negatives += pair.measured.counts.negatives;
  }
  figures.transactions = times.size();
  figures.response_ms = measuring::summarize(std::move(times));
  if (figures.seconds <= 0) return figures;
  figures.transactions_per_second = static_cast<double>(figures.transactions) / figures.seconds;
  figures.megabits_per_second = figures.transactions_per_second * workload.file_bytes * 8 / 1e6;
  return figures;
}

std::string short_name(const Row& row) {
  return std::string(name_of(row.workload.script)) + " " + std::string(name_of(row.workload.protocol)) +
         (row.pairs > 1 ? ", " + std::to_string(row.pairs) + " pairs" : "");
}

void print_table(const std::vector<RowResult>& results, std::ostream& out) {
  std::vector<std::vector<std::string>> lines{{"script", "over", "pairs", "file", "send", "window", "calls",
                                               "done", "mean ms", "median", "p95", "p99", "Mbit/s", "per s",
                                               "again"}};
  for (const RowResult& result : results) {
    const Workload& workload = result.row.workload;
    const Figures figures = figures_of(result.pairs, workload);
    if (figures.transactions == 0) continue;
    lines.push_back({std::string(name_of(workload.script)), std::string(name_of(workload.protocol)),
                     std::to_string(result.row.pairs), std::to_string(workload.file_bytes),
                     std::to_string(workload.send_buffer), window_text(workload),
                     std::string(name_of(workload.calls)), std::to_string(figures.transactions),
                     rounded(figures.response_ms.mean), rounded(figures.response_ms.median),
                     rounded(figures.response_ms.p95), rounded(figures.response_ms.p99),
                     rounded(figures.megabits_per_second), rounded(figures.transactions_per_second),
                     workload.protocol == Protocol::udp ? std::to_string(figures.counts.sent_again) : "-"});
  }
  if (lines.size() > 1) print_aligned(lines, out);
  for (const RowResult& result : results) {
    if (result.interrupted)
      out << short_name(result.row) << ": interrupted; the results cover the time until then\n";
    if (!result.trouble.empty()) out << short_name(result.row) << ": failed: " << result.trouble << '\n';
  }
}

void print_csv(const std::vector<RowResult>& results, std::ostream& out) {
  out << "script,protocol,pairs,file_bytes,send_buffer,window_bytes,mtu,calls,transactions,seconds,mean_ms,"
         "deviation_ms,"
         "least_ms,median_ms,p95_ms,p99_ms,most_ms,mbit_per_s,transactions_per_s,datagrams_sent_again,"
         "timeouts,"
         "negative_acknowledgements,outcome\n";
  for (const RowResult& result : results) {
    const Workload& workload = result.row.workload;
    const Figures figures = figures_of(result.pairs, workload);
    const auto& response = figures.response_ms;
    out << name_of(workload.script) << ',' << name_of(workload.protocol) << ',' << result.row.pairs << ','
        << workload.file_bytes << ',' << workload.send_buffer << ',' << workload.window_bytes << ','
        << workload.mtu << ',' << name_of(workload.calls) << ',' << figures.transactions << ','
        << decimal(figures.seconds, 6);
    for (const double ms : {response.mean, response.deviation, response.least, response.median, response.p95,
                            response.p99, response.most})
      out << ',' << decimal(ms, 6);
    out << ',' << decimal(figures.megabits_per_second, 6) << ','
        << decimal(figures.transactions_per_second, 3) << ',' << figures.counts.sent_again << ','
        << figures.counts.timeouts << ',' << figures.counts.negatives << ','
        << (!result.trouble.empty() ? "failed"
            : result.interrupted    ? "interrupted"
                                    : "done")
        << '\n';
  }
}

boost::json::object to_json(const std::vector<RowResult>& results) {
  boost::json::array rows;
  for (const RowResult& result : results) {
    boost::json::object row = json_of(figures_of(result.pairs, result.row.workload));
    row["workload"] = to_json(result.row.workload);
    row["outcome"] = !result.trouble.empty() ? "failed" : result.interrupted ? "interrupted" : "done";
    if (!result.trouble.empty()) row["trouble"] = result.trouble;
    boost::json::array pairs;
    for (const PairResult& pair : result.pairs) {
      boost::json::object one = json_of(figures_of({pair}, result.row.workload));
      one["from"] = pair.from;
      one["to"] = pair.to;
      pairs.push_back(std::move(one));
    }
    row["pairs"] = std::move(pairs);
    rows.push_back(std::move(row));
  }
  boost::json::object json;
  json["rows"] = std::move(rows);
  return json;
}

}  // namespace longhaul::txn
