# SPDX-License-Identifier: Apache-2.0
"""Keys that both ends of a TLS connection derive from it, as the daemon does for UDP and for the checksums of blocks."""

import _ssl
import ctypes


def exported(tls, label, context, size):
    """RFC 8446, section 7.5. The ssl module has no call for it, so OpenSSL is asked about the connection inside."""
    library = ctypes.CDLL(_ssl.__file__)  # and what it is linked to
    behind_socket = 3 * ctypes.sizeof(ctypes.c_void_p)  # struct PySSLSocket: the object's head, the socket, SSL*
    inside = ctypes.c_void_p.from_address(id(tls._sslobj) + behind_socket)  # pylint: disable=protected-access
    out = ctypes.create_string_buffer(size)
    done = library.SSL_export_keying_material(inside, out, ctypes.c_size_t(size), label, ctypes.c_size_t(len(label)),
                                              context, ctypes.c_size_t(len(context)), 1)
    if done != 1:
        raise OSError("no keying material")
    return out.raw
