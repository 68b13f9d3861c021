// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

import jcifs.CIFSContext;
import jcifs.config.PropertyConfiguration;
import jcifs.context.BaseContext;
import jcifs.smb.NtlmPasswordAuthenticator;
import jcifs.smb.SmbException;
import jcifs.smb.SmbFile;
import jcifs.smb.SmbRandomAccessFile;

/**
 * Writes with jcifs-ng: every dialect, unsigned. Its random access opens a file again by itself when the connection broke, so
 * the program may never learn of it. Command line, policies and lines are those of ../writing.py.
 */
public final class Write {
    private static final Map<String, String> VERSIONS =
        Map.of("NT1", "SMB1", "2.1", "SMB210", "3.0", "SMB300", "3.1.1", "SMB311");
    // The session, the tree or the handle is gone, and the server says so: a program that logs in again may go on.
    private static final Set<Integer> SESSION_IS_GONE = Set.of(0xC0000008, 0xC00000B5, 0xC00000C9, 0xC0000128, 0xC0000203,
        0xC000020C, 0xC000020D, 0xC000035C);
    private static final int SHARING_VIOLATION = 0xC0000043;  // the server may not have noticed that the connection is gone

    private final Map<String, String> options;
    private final byte[] data;
    private final int blocks, size;
    private String call = "";
    private int begin = 0;  // the first block that the next login has to write
    private boolean touched;  // the file must not be emptied (any more)
    private long until;

    private Write(Map<String, String> options) throws IOException {
        this.options = options;
        data = options.containsKey("look") ? new byte[0] : Files.readAllBytes(Path.of(options.get("data")));
        blocks = Integer.parseInt(options.getOrDefault("blocks", "40"));
        size = Integer.parseInt(options.getOrDefault("size", "32768"));
        touched = options.containsKey("in-place");
        bePatient();
    }

    private long milliseconds(String option, String otherwise) {
        return (long) (1000 * Double.parseDouble(options.getOrDefault(option, otherwise)));
    }

    private void bePatient() {
        until = System.currentTimeMillis() + milliseconds("patience", "20");
    }

    private static void say(String what) {
        System.out.printf("{\"at\": %.4f, %s}%n", System.currentTimeMillis() / 1000.0, what);
        System.out.flush();
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "'").replaceAll("[\\x00-\\x1f]", " ") + '"';
    }

    /** A context keeps its connections: a new login is a new one. */
    private CIFSContext login() throws IOException {
        Properties properties = new Properties();
        String version = VERSIONS.get(options.getOrDefault("dialect", "3.1.1"));
        String timeout = Long.toString(milliseconds("timeout", "60"));
        properties.setProperty("jcifs.smb.client.minVersion", version);
        properties.setProperty("jcifs.smb.client.maxVersion", version);
        properties.setProperty("jcifs.smb.client.responseTimeout", timeout);
        properties.setProperty("jcifs.smb.client.soTimeout", timeout);
        properties.setProperty("jcifs.smb.client.connTimeout", timeout);
        properties.setProperty("jcifs.smb.client.ipcSigningEnforced", "false");
        properties.setProperty("jcifs.smb.client.dfs.disabled", "true");
        properties.setProperty("jcifs.smb.client.useBatching", "false");
        properties.setProperty("jcifs.resolveOrder", "DNS");
        return new BaseContext(new PropertyConfiguration(properties))
            .withCredentials(new NtlmPasswordAuthenticator("", options.get("user"), options.get("password")));
    }

    /** Logs in, writes the blocks from `begin` to the last, and closes. */
    private void writeFrom() throws IOException, InterruptedException {
        String path = "smb://" + options.get("host") + "/" + options.get("share") + "/" + options.get("name");
        call = "login";
        CIFSContext context = login();
        SmbFile file = new SmbFile(path, context);
        file.connect();
        call = "open";
        if (!touched) {
            file.openOutputStream(false).close();  // random access never empties a file
        }
        SmbRandomAccessFile open = new SmbRandomAccessFile(file, "rw");
        say("\"opened\": true");
        for (int number = begin; number < blocks; ++number) {
            call = "write";
            open.seek((long) number * size);
            open.write(data, number * size, size);
            touched = true;
            begin = number + 1;
            bePatient();
            say("\"acked\": " + number);
            Thread.sleep((long) Double.parseDouble(options.getOrDefault("pace", "0")));
        }
        call = "close";
        open.close();
        if (!"close-only".equals(options.get("policy"))) {
            context.close();
        }
    }

    /** What one look shows, as text: ../looking.py. */
    private static String lookedAt(String what, String path, CIFSContext context, SmbRandomAccessFile held, int turn)
        throws IOException {
        if (what.equals("size")) {
            return Long.toString(new SmbFile(path, context).length());
        }
        if (what.equals("names")) {
            String[] names = new SmbFile(path.substring(0, path.lastIndexOf('/') + 1), context).list();
            Arrays.sort(names);
            return String.join(" ", names);
        }
        byte[] bytes = new byte[4096];
        int read;
        if (held != null) {
            held.seek(turn % 64 * 4096L);
            read = held.read(bytes);
        } else {
            try (InputStream file = new SmbFile(path, context).openInputStream()) {
                read = file.read(bytes);
            }
        }
        return new String(bytes, 0, Math.max(0, Math.min(64, read)), StandardCharsets.US_ASCII).replace("\0", "");
    }

    private void look() throws IOException, InterruptedException {
        String path = "smb://" + options.get("host") + "/" + options.get("share") + "/" + options.get("name");
        String what = options.get("look");
        CIFSContext context = login();
        SmbRandomAccessFile held = what.equals("held") ? new SmbRandomAccessFile(new SmbFile(path, context), "r") : null;
        String last = "";
        for (int turn = 0; ; ++turn) {
            String found = lookedAt(what, path, context, held, turn);
            if (!found.equals(last)) {
                say("\"seen\": " + quoted(found));
                last = found;
            }
            Thread.sleep(2);
        }
    }

    /** A program that looks ends with its standard input. */
    private static void endWith(BufferedReader input) {
        Thread thread = new Thread(() -> {
            try {
                input.readLine();
            } catch (IOException error) {
                // it is gone as well
            }
            Runtime.getRuntime().halt(0);
        });
        thread.setDaemon(true);
        thread.start();
    }

    private boolean isBroken(IOException error) {
        if (call.equals("login")) {
            return true;
        }
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof java.net.SocketException || cause instanceof java.net.SocketTimeoutException
                || cause instanceof jcifs.util.transport.TransportException) {
                return true;
            }
        }
        int status = error instanceof SmbException ? ((SmbException) error).getNtStatus() : 0;
        return SESSION_IS_GONE.contains(status) || (call.equals("open") && status == SHARING_VIOLATION);
    }

    private void run() throws InterruptedException {
        while (true) {
            try {
                writeFrom();
                say("\"end\": \"success\"");
                return;
            } catch (IOException error) {
                boolean broken = isBroken(error);
                say("\"error\": " + quoted(error.toString()) + ", \"call\": " + quoted(call) + ", \"broken\": " + broken);
                if (!broken || !"continue".equals(options.get("policy")) || System.currentTimeMillis() > until) {
                    break;
                }
                Thread.sleep(200);
            }
        }
        say("\"end\": \"failure\"");
    }

    public static void main(String[] words) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int at = 0; at < words.length; ++at) {
            String option = words[at].substring(2);
            boolean bare = option.equals("in-place") || option.equals("no-wait");
            options.put(option, bare ? "" : words[++at]);
        }
        Write write = new Write(options);
        say("\"ready\": true");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        if (!options.containsKey("no-wait")) {
            input.readLine();
        }
        if (options.containsKey("look")) {
            endWith(input);
            write.look();
        }
        write.bePatient();
        write.run();
        System.exit(0);  // its threads may still wait for a server that is gone
    }
}
