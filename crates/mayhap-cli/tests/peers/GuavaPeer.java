// Guava's BloomFilter, asked from the outside.
//
//   GuavaPeer make FILE CAPACITY FPR KIND < keys     writes a filter of the keys
//   GuavaPeer ask FILE KIND < keys                   prints 1 or 0 for each key
//
// Keys are lines. KIND is the funnel that they go through.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;

public final class GuavaPeer {
    public static void main(String[] args) throws IOException {
        Path file = Path.of(args[1]);
        switch (args[args.length - 1]) {
            case "utf8" -> run(args, file, Funnels.stringFunnel(StandardCharsets.UTF_8), line -> line);
            case "utf16" -> run(args, file, Funnels.unencodedCharsFunnel(), line -> line);
            case "i32" -> run(args, file, Funnels.integerFunnel(), Integer::valueOf);
            case "i64" -> run(args, file, Funnels.longFunnel(), Long::valueOf);
            default -> throw new IllegalArgumentException("unknown kind of keys");
        }
    }

    private static <K> void run(String[] args, Path file, Funnel<? super K> funnel, Function<String, K> key)
            throws IOException {
        List<K> keys = lines().stream().map(key).collect(Collectors.toList());
        if (args[0].equals("make")) {
            int capacity = Integer.parseInt(args[2]);
            BloomFilter<K> filter = BloomFilter.create(funnel, capacity, Double.parseDouble(args[3]));
            keys.forEach(filter::put);
            try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
                filter.writeTo(out);
            }
        } else {
            try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
                BloomFilter<K> filter = BloomFilter.readFrom(in, funnel);
                System.out.println(
                        keys.stream().map(k -> filter.mightContain(k) ? "1" : "0").collect(Collectors.joining()));
            }
        }
    }

    private static List<String> lines() throws IOException {
        InputStreamReader text = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        try (BufferedReader reader = new BufferedReader(text)) {
            return reader.lines().collect(Collectors.toList());
        }
    }
}
