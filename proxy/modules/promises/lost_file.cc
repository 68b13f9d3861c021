// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/lost_file.h"

namespace longhaul::promises {

std::optional<LostFile> name_after(const LostFile& file, const LostFile& from,
                                           const LostFile& to) {
  const bool is_spelled = !file.spelled.empty() && !to.spelled.empty();
  if (file == from) {
    LostFile moved = to;
    if (!is_spelled) moved.spelled.clear();
    return moved;
  }
  if (any_port(file.ends) != any_port(from.ends) || file.share != from.share ||
      !file.path.starts_with(from.path) || file.path.size() <= from.path.size() ||
      file.path[from.path.size()] != u'\\')
    return std::nullopt;
  LostFile moved = to;
  moved.path.append(file.path, from.path.size());
  // Equal names are equally long, however they are spelled.
  if (is_spelled && file.spelled.size() == file.path.size())
    moved.spelled.append(file.spelled, from.path.size());
  else
    moved.spelled.clear();
  return moved;
}

void Loss::bound_ranges() {
  IntervalSet set;
  for (const Interval& range : ranges) set.add(range);
  ranges = set.intervals();
  if (ranges.size() > kMostRanges) ranges = {Interval{ranges.front().begin, ranges.back().end}};
}

}  // namespace longhaul::promises
