// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/aqm/discipline.h"

#include "tools/wan/aqm/fq_codel.h"
#include "tools/wan/aqm/pie.h"
#include "tools/wan/aqm/red.h"

namespace longhaul::wan {

std::string_view name_of(AqmConfig::Kind kind) {
  switch (kind) {
    case AqmConfig::Kind::codel:
      return "codel";
    case AqmConfig::Kind::fq_codel:
      return "fq_codel";
    case AqmConfig::Kind::pie:
      return "pie";
    case AqmConfig::Kind::red:
      return "red";
  }
  return "";
}

std::unique_ptr<Discipline> make_discipline(const AqmConfig& config, std::uint64_t seed) {
  switch (config.kind) {
    case AqmConfig::Kind::codel:
      return std::make_unique<CodelQueue>(config);
    case AqmConfig::Kind::fq_codel:
      return std::make_unique<FqCodelQueue>(config);
    case AqmConfig::Kind::pie:
      return std::make_unique<PieQueue>(config, seed);
    case AqmConfig::Kind::red:
      return std::make_unique<RedQueue>(config, seed);
  }
  return nullptr;
}

}  // namespace longhaul::wan
