// SPDX-License-Identifier: Apache-2.0
// Configures the kernel's TCP for the link, and reads the amount of unsent data. line_measure.h reads
// measurements.
#pragma once
#include <cstdint>
#include <string>

#include "proxy/link/io/line_measure.h"

namespace longhaul::link {

// Before connect or listen: buffers large enough that the window is never the limit, if the process may set
// them; otherwise the largest that the system allows.
void set_link_buffers(int socket);

// On a connected socket: no Nagle, the congestion control, and a time after which a connection without any
// acknowledgement ends: while UDP carries, only that detects that this connection is dead. Returns the
// congestion control in force, which differs if the kernel does not have the requested one.
std::string set_link_options(int socket, const std::string& congestion_control);

// Limits the rate to this many bits of IP packets a second from now on (SO_MAX_PACING_RATE); 0: no bound.
void set_rate_limit(int socket, std::uint64_t ip_bits_per_second);

// Bytes in the socket that TCP has not sent for the first time (SIOCOUTQNSD).
std::size_t unsent_bytes(int socket);
// The kernel reports the socket as writable only while fewer than this many bytes wait there
// (TCP_NOTSENT_LOWAT).
void set_unsent_low_water(int socket, std::uint32_t bytes);

}  // namespace longhaul::link
