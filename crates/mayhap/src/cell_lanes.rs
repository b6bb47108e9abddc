//! Cells of a bucket looked at together, a lane for each: arithmetic without memory, for the buckets in `bits` and for the
//! vector loops.

/// The most bits of a cell: with 7 bits before it in the same byte it must fit a word (and 58 is even, as are those
/// bits then).
pub(crate) const MAX_WIDTH: u32 = 58;

/// The bits of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellShape {
    /// Of its remainder; at least 2, and together with the counter at most [`MAX_WIDTH`].
    pub(crate) remainder_bits: u32,
    /// Of its counter; at least 2.
    pub(crate) counter_bits: u32,
}

impl CellShape {
    /// Both together.
    pub(crate) const fn width(self) -> u32 {
        self.remainder_bits + self.counter_bits
    }

    /// The highest count.
    pub(crate) const fn max(self) -> u64 {
        (1 << self.counter_bits) - 1
    }
}

/// How many cells of this width are looked at together. Four, two and one divide a bucket. Together they take at most 64
/// bits, with those before them in the same byte; two of 31 bits would not.
#[inline(always)]
const fn together(width: u32) -> u32 {
    match width {
        ..=16 => 4,
        17..=30 => 2,
        _ => 1,
    }
}

/// Where a fingerprint may be: a bucket in each of four subtables, numbered among those of all, and a remainder in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FourPlaces {
    pub(crate) buckets: [u64; 4],
    pub(crate) remainders: [u64; 4],
}

/// How several cells are looked at in one word: a lane for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellLanes {
    pub(crate) shape: CellShape,
    /// The lowest bit of each lane, of as many as are looked at together.
    pub(crate) ones: u64,
    /// The highest bit of each.
    pub(crate) tops: u64,
    /// The counter of each.
    pub(crate) counters: u64,
}

impl CellLanes {
    pub(crate) fn new(shape: CellShape) -> Self {
        let width = shape.width();
        let ones = (0..together(width)).map(|lane| 1 << (lane * width)).sum();
        Self { shape, ones, tops: ones << (width - 1), counters: ones * shape.max() }
    }

    /// How many cells are looked at together.
    #[inline(always)]
    pub(crate) const fn together(&self) -> u32 {
        together(self.shape.width())
    }

    /// The highest bit of each lane whose cell is not empty.
    ///
    /// Adding 2^(width - 1) - 1 sets it if and only if there is a bit below, and never carries into the next lane.
    #[inline(always)]
    pub(crate) const fn taken(&self, cells: u64) -> u64 {
        ((cells & self.counters) + (self.tops - self.ones)) & self.tops
    }

    /// The highest bit of each lane whose cell has the remainder that stands in each lane of `wanted`, and is not
    /// empty.
    #[inline(always)]
    pub(crate) const fn matching(&self, cells: u64, wanted: u64) -> u64 {
        let (below, other) = (self.tops - self.ones, (cells ^ wanted) & !self.counters);
        let differing = ((other & below) + below) | other;
        self.taken(cells) & !differing
    }

    /// Not 0 if a cell, empty or not, has the remainder that stands in each lane of `wanted`. Half the work of
    /// [`matching`](CellLanes::matching).
    #[inline(always)]
    pub(crate) const fn resembling(&self, cells: u64, wanted: u64) -> u64 {
        let other = (cells ^ wanted) & !self.counters;
        // A lane of 0 borrows and gets its highest bit; those below the first such lane do not.
        other.wrapping_sub(self.ones) & !other & self.tops
    }

    /// The remainder in each lane.
    #[inline(always)]
    pub(crate) const fn spread(&self, remainder: u64) -> u64 {
        self.ones.wrapping_mul(remainder << self.shape.counter_bits)
    }
}
