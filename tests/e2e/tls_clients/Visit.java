// SPDX-License-Identifier: Apache-2.0
// Visits a server with Java's HttpClient: java Visit.java NAME ADDRESS FILE-OF-AUTHORITIES FILE-TO-UPLOAD. See README.md.
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.util.HexFormat;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

class Visit {
  static String name;
  static long firstSession;

  // It keeps the sessions of its connections.
  static SSLContext trusting(Path authorities) throws Exception {
    KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null, null);
    try (InputStream file = Files.newInputStream(authorities)) {
      trusted.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
    }
    TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    factory.init(trusted);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, factory.getTrustManagers(), null);
    return context;
  }

  // Each visit is a connection of its own, as each client has its own pool.
  static void visit(SSLContext context, HttpClient.Version version, String step, String path, BodyPublisher upload)
      throws Exception {
    HttpClient client = HttpClient.newBuilder().sslContext(context).version(version).build();
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("https://" + name + path));
    if (upload != null) request.PUT(upload);
    HttpResponse<byte[]> response = client.send(request.build(), BodyHandlers.ofByteArray());
    // A session that resumes another has its time of creation.
    long created = response.sslSession().get().getCreationTime();
    boolean resumed = created == firstSession;
    if (step.equals("first")) firstSession = created;
    String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(response.body()));
    System.out.printf("{\"step\": \"%s\", \"protocol\": \"%s\", \"resumed\": %b, \"status\": %d, \"bytes\": %d, \"sha256\": \"%s\"}%n",
        step, response.version() == HttpClient.Version.HTTP_2 ? "HTTP/2.0" : "HTTP/1.1", resumed,
        response.statusCode(), response.body().length, digest);
  }

  public static void main(String[] words) throws Exception {
    name = words[0];
    Path hosts = Files.writeString(Path.of("hosts-of-java"), words[1] + " " + name + "\n");
    System.setProperty("jdk.net.hosts.file", hosts.toString());
    for (HttpClient.Version version : HttpClient.Version.values()) {
      SSLContext context = trusting(Path.of(words[2]));
      visit(context, version, "first", "/page", null);
      visit(context, version, "again", "/page", null);
      visit(context, version, "upload", "/by-java-" + version, BodyPublishers.ofFile(Path.of(words[3])));
    }
    System.exit(0);
  }
}
