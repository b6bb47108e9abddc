// Spark's BloomFilter, asked from the outside.
//
//   SparkPeer make FILE CAPACITY FPR KIND < keys     writes a filter of the keys
//   SparkPeer ask FILE KIND < keys                   prints 1 or 0 for each key
//
// Keys are lines. KIND is string or long; string-v1 and long-v1 make filters of the first version.

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
import java.util.stream.Collectors;
import org.apache.spark.util.sketch.BloomFilter;

public final class SparkPeer {
    public static void main(String[] args) throws IOException {
        Path file = Path.of(args[1]);
        String kind = args[args.length - 1];
        boolean longs = kind.startsWith("long");
        List<String> keys = lines();
        if (args[0].equals("make")) {
            BloomFilter filter = create(Long.parseLong(args[2]), Double.parseDouble(args[3]), kind.endsWith("v1"));
            for (String key : keys) {
                if (longs) {
                    filter.putLong(Long.parseLong(key));
                } else {
                    filter.putString(key);
                }
            }
            try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
                filter.writeTo(out);
            }
        } else {
            try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
                BloomFilter filter = BloomFilter.readFrom(in);
                StringBuilder answers = new StringBuilder();
                for (String key : keys) {
                    boolean yes = longs ? filter.mightContainLong(Long.parseLong(key)) : filter.mightContainString(key);
                    answers.append(yes ? '1' : '0');
                }
                System.out.println(answers);
            }
        }
    }

    private static BloomFilter create(long capacity, double fpr, boolean first) {
        if (!first) {
            return BloomFilter.create(capacity, fpr);
        }
        long bits = BloomFilter.optimalNumOfBits(capacity, fpr);
        return BloomFilter.create(BloomFilter.Version.V1, capacity, bits, 0);
    }

    private static List<String> lines() throws IOException {
        InputStreamReader text = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        try (BufferedReader reader = new BufferedReader(text)) {
            return reader.lines().collect(Collectors.toList());
        }
    }
}
