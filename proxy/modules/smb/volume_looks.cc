// SPDX-License-Identifier: Apache-2.0
// See volume_looks.h.
#include "proxy/modules/smb/volume_looks.h"

#include <algorithm>

namespace longhaul::smb {

void VolumeLooks::begin(TimePoint now, const OpenKey& open, const Slice& question, const Slice& response) {
  if (response.size() > kMostAnswerBytes) return;
  std::erase_if(volumes_, [&](const Watched& each) {
    const Volume& volume = each.volume;
    return volume.open.session == open.session && volume.open.tree == open.tree &&
           as_text(volume.question.bytes()) == as_text(question.bytes());
  });
  if (volumes_.size() >= kMostVolumes) return;
  volumes_.push_back({.number = ++last_,
                      .volume = {.open = open, .question = question, .told = response},
                      .until = now + kVolumeWatched,
                      .due = now + kVolumePeriod});
  tell_(volumes_.back().volume, Answer::known);
}

void VolumeLooks::closing(const OpenKey& open) {
  std::erase_if(volumes_, [&](const Watched& each) { return each.volume.open == open; });
}

void VolumeLooks::on_timeout(TimePoint now) {
  for (auto each = volumes_.begin(); each != volumes_.end();) {
    const auto watched = each++;
    if (watched->due > now) continue;
    if (watched->until <= now) {
      volumes_.erase(watched);
    } else if (watched->is_asked || !look(now, *watched)) {
      tell_(watched->volume, Answer::unknown);  // no current response is available for a while
      volumes_.erase(watched);
    }
  }
}

std::optional<TimePoint> VolumeLooks::next_timeout() const {
  std::optional<TimePoint> first;
  for (const Watched& watched : volumes_)
    if (!first || watched.due < *first) first = watched.due;
  return first;
}

bool VolumeLooks::look(TimePoint now, Watched& watched) {
  watched.is_asked = true;
  watched.due = now + kVolumePeriod;
  return ask_(watched.volume, now, watched.number);
}

void VolumeLooks::answered(std::uint64_t number, std::optional<Slice> response) {
  const auto watched = std::find_if(volumes_.begin(), volumes_.end(),
                                    [&](const Watched& each) { return each.number == number; });
  if (watched == volumes_.end()) return;
  watched->is_asked = false;
  if (!response || response->size() > kMostAnswerBytes) {
    tell_(watched->volume, Answer::unknown);
    volumes_.erase(watched);
  } else if (as_text(response->bytes()) != as_text(watched->volume.told.bytes())) {
    watched->volume.told = std::move(*response);
    tell_(watched->volume, Answer::known);
  }
}

}  // namespace longhaul::smb
