// SPDX-License-Identifier: Apache-2.0
#include "tests/model/cases.h"
#include "tests/model/reads.h"

namespace longhaul::model {

std::vector<Case> read_cases(Extent extent) {
  constexpr const char* kStale = "a READ was answered with bytes that a direct one could not have got";
  std::vector<Case> cases;
  const auto add = [&cases](const char* sentence, const char* breaks, const ReadDesign& design,
                            const ReadBounds& bounds) {
    cases.push_back({sentence, breaks, [design, bounds](std::size_t most) {
                       return Explorer(Reads(design, bounds), most).run();
                     }});
  };
  add("READs from memory; a program on the server, a second client and the client itself write", nullptr, {},
      {.local_writes = 1});
  add("READs from memory; a program on the server and a second client write", nullptr, {}, {.own_writes = 0});
  if (extent == Extent::large) add("READs from memory; all of them write, one twice", nullptr, {}, {});
  add("nothing is watched beside smbd", kStale, {.watches = false},
      {.smb_writes = 0, .own_writes = 0, .cuts = 0});
  add("read before the server listens", kStale, {.fetches_only_watched = false}, {});
  add("data are used whatever their stamps", kStale, {.checks_stamps = false}, {});
  add("read while the client's WRITE is under way", kStale, {.pauses_for_changes = false},
      {.local_writes = 0, .smb_writes = 0});
  add("the near half answers on a silent line for as long as an oplock lasts", kStale,
      {.near_silence = 3, .far_silence = 4}, {.smb_writes = 0});
  add("the far half gives an oplock back before the near one has stopped", kStale, {.far_silence = 0}, {});
  add("limit: the server says that it listens before it does", kStale, {.listens_at_once = false}, {});
  return cases;
}

}  // namespace longhaul::model
