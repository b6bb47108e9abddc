//! Which instructions the processor has. Without the standard library only what the build promises counts.

/// Whether all of these instructions can be used.
macro_rules! all_detected {
    ($($instructions:tt),*) => {{
        #[cfg(feature = "std")]
        return $(std::arch::is_x86_feature_detected!($instructions))&&*;
        #[cfg(not(feature = "std"))]
        return cfg!(all($(target_feature = $instructions),*));
    }};
}

/// AVX2, and BMI for the arithmetic around it.
#[inline]
pub(super) fn has_avx2() -> bool {
    all_detected!("avx2", "bmi1", "bmi2")
}

/// The same, and the number of set bits.
#[inline(always)]
pub(super) fn has_avx2_and_popcnt() -> bool {
    all_detected!("avx2", "bmi2", "bmi1", "popcnt")
}

/// BMI, and the number of set bits.
#[inline(always)]
pub(super) fn has_bmi2_and_popcnt() -> bool {
    all_detected!("bmi2", "bmi1", "popcnt")
}
