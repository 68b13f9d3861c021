// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/agreed_keys.h"

namespace longhaul::link {

Result<std::unique_ptr<reduction::Reduction>> make_codec(const LinkShared& shared, const config::Peer& peer,
                                                         Agreed& agreed) {
  // The histories of both sides begin with the session, so they are equal.
  if (!shared.make_codec || agreed.theirs.blocks != kBlockVersion) return nullptr;
  const TlsEngine& tls = agreed.connection.tls();
  const auto secret = tls.export_keying_material(kBlockExporterLabel, {}, BlockChecksum::kSecretBytes);
  if (!secret) return secret.error();
  return shared.make_codec(peer, tls, BlockChecksum(Bytes(*secret).first<BlockChecksum::kSecretBytes>()));
}

Result<udp::CarrierKeys> packet_keys(const LinkShared& shared, Agreed& agreed, const Token& session, Side own,
                                     std::optional<std::uint64_t> path) {
  const Buffer context = path ? udp::exporter_context(session, agreed.udp.epoch, *path)
                              : udp::exporter_context(session, agreed.udp.epoch);
  const auto exported = agreed.connection.tls().export_keying_material(
      path ? udp::kPathExporterLabel : udp::kExporterLabel, context, udp::kExportedBytes);
  if (!exported) return exported.error();
  udp::CarrierKeys keys = udp::keys_from_exporter(*exported);
  if (const auto& key_log = shared.tls.key_log())
    key_log->write(keys, agreed.udp.cipher, session, own == agreed.side ? Side::dialler : Side::acceptor);
  return keys;
}

}  // namespace longhaul::link
