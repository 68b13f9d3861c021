// SPDX-License-Identifier: Apache-2.0
// Visits a server as Java programs do, with their own verification: Visit NAME FILE-OF-AUTHORITIES, at 127.0.0.1.
import java.io.FileInputStream;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

class Visit {
  public static void main(String[] words) throws Exception {
    KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null, null);
    try (InputStream in = new FileInputStream(words[1])) {
      for (Certificate each : CertificateFactory.getInstance("X.509").generateCertificates(in))
        trusted.setCertificateEntry("authority " + trusted.size(), each);
    }
    TrustManagerFactory managers = TrustManagerFactory.getInstance("PKIX");
    managers.init(trusted);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, managers.getTrustManagers(), null);
    try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(new Socket("127.0.0.1", 443), words[0], 443, true)) {
      SSLParameters parameters = socket.getSSLParameters();
      parameters.setEndpointIdentificationAlgorithm("HTTPS");  // the name is verified, too
      socket.setSSLParameters(parameters);
      String request = "GET /page HTTP/1.0\r\nHost: " + words[0] + "\r\n\r\n";
      socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
      socket.getInputStream().transferTo(System.out);
    }
    System.out.flush();
  }
}
