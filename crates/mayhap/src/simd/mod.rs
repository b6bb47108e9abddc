//! What needs a machine's own instructions. The only folder of the library that may be unsafe.
#![allow(unsafe_code)]

/// Asks for the cache line of `slice[index]` before it is needed. Out of range is no error: nothing
/// happens, since a prefetch never changes an answer.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the pointer comes from a reference, so it is valid; the instruction reads nothing
        // into the program, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(element).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
