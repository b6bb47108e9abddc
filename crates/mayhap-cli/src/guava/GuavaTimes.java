// Guava's BloomFilter with the keys that `mayhap eval --suite classic` draws, timed from the inside.
//
//   GuavaTimes KIND KEYS FPR SEED ROUNDS
//
// KIND is number or uuid. It waits for a byte before each round, so that others can be timed in between, and prints a line: nanoseconds per put, per question for a key that is in, per
// question for one that is not, and how many of those were admitted. Keys are made before the clock runs.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;

import java.nio.charset.StandardCharsets;
import java.util.function.LongFunction;
import java.util.function.ToLongFunction;

public final class GuavaTimes {
    private static final long ABSENT = 1L << 40;
    private static final int BATCH = 100_000;

    private static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    private static long number(long seed, long index) {
        return mix(seed + 0x9e3779b97f4a7c15L * (index + 1));
    }

    private static String uuid(long id) {
        long displaced = (id >>> 12) & 0xf;
        long high = (id & ~0xf000L) | 0x4000L;
        long low = (0b10L << 62) | (displaced << 58) | (number(id, 0) >>> 6);
        return new java.util.UUID(high, low).toString();
    }

    // Works on keys first.. in batches, so that they need not all be there at once.
    private static <K> long[] timed(long first, long count, LongFunction<K> key, ToLongFunction<Object[]> work) {
        long nanoseconds = 0;
        long hits = 0;
        for (long start = 0; start < count; start += BATCH) {
            Object[] keys = new Object[(int) Math.min(BATCH, count - start)];
            for (int i = 0; i < keys.length; i++) {
                keys[i] = key.apply(first + start + i);
            }
            long started = System.nanoTime();
            hits += work.applyAsLong(keys);
            nanoseconds += System.nanoTime() - started;
        }
        return new long[] {nanoseconds, hits};
    }

    @SuppressWarnings("unchecked")
    private static <K> void round(BloomFilter<K> filter, long count, LongFunction<K> key) {
        ToLongFunction<Object[]> put = keys -> {
            long changed = 0;
            for (Object k : keys) {
                changed += filter.put((K) k) ? 1 : 0;
            }
            return changed;
        };
        ToLongFunction<Object[]> ask = keys -> {
            long hits = 0;
            for (Object k : keys) {
                hits += filter.mightContain((K) k) ? 1 : 0;
            }
            return hits;
        };
        long[] puts = timed(0, count, key, put);
        long[] hits = timed(0, count, key, ask);
        long[] misses = timed(ABSENT, count, key, ask);
        if (hits[1] != count) {
            throw new IllegalStateException("a key was lost");
        }
        double keys = count;
        System.out.println(
            puts[0] / keys + " " + hits[0] / keys + " " + misses[0] / keys + " " + misses[1]);
    }

    public static void main(String[] args) throws java.io.IOException {
        boolean numbers = args[0].equals("number");
        long count = Long.parseLong(args[1]);
        double fpr = Double.parseDouble(args[2]);
        long seed = Long.parseUnsignedLong(args[3]);
        int rounds = Integer.parseInt(args[4]);
        for (int round = 0; round < rounds; round++) {
            System.in.read();
            if (numbers) {
                BloomFilter<Long> filter = BloomFilter.create(Funnels.longFunnel(), count, fpr);
                round(filter, count, index -> number(seed, index));
            } else {
                BloomFilter<CharSequence> filter =
                    BloomFilter.create(Funnels.stringFunnel(StandardCharsets.UTF_8), count, fpr);
                round(filter, count, index -> uuid(number(seed, index)));
            }
        }
    }
}
