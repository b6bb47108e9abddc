//! Work that several threads share, and that one can do alone.

use alloc::vec::Vec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, Builder};

/// Runs `work` in up to `threads` threads at once, and returns what each gave or the panic that ended it.
///
/// What there is to do is shared by all calls of `work`: each takes the next part until there is none. So it does not
/// matter how many threads start. A single one is not worth starting, wasm32 has none, and a system may have no more:
/// if none starts, the calling thread does it all.
pub(crate) fn run<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<thread::Result<T>> {
    run_in(threads, Builder::new, work)
}

fn run_in<T: Send>(
    threads: usize,
    builder: impl Fn() -> Builder,
    work: impl Fn() -> T + Sync,
) -> Vec<thread::Result<T>> {
    thread::scope(|scope| {
        let wanted = if threads > 1 { threads } else { 0 };
        let started = (0..wanted).map_while(|_| builder().spawn_scoped(scope, &work).ok());
        let handles: Vec<_> = started.collect();
        if handles.is_empty() {
            return Vec::from([catch_unwind(AssertUnwindSafe(&work))]);
        }
        handles.into_iter().map(|handle| handle.join()).collect()
    })
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// The numbers from 1 to 100, shared; which threads did it, and the sum.
    fn shared_sum(threads: usize, builder: impl Fn() -> Builder) -> (Vec<thread::ThreadId>, u32) {
        let next = AtomicU32::new(1);
        let work = || {
            let numbers = core::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            (thread::current().id(), numbers.take_while(|&number| number <= 100).sum::<u32>())
        };
        let done: Vec<_> = run_in(threads, builder, work).into_iter().map(Result::unwrap).collect();
        (done.iter().map(|(id, _)| *id).collect(), done.iter().map(|(_, sum)| sum).sum())
    }

    #[test]
    fn no_thread_is_started_for_one() {
        for threads in [0, 1] {
            assert_eq!(
                shared_sum(threads, || panic!("a thread for one")),
                ([thread::current().id()].to_vec(), 5050)
            );
        }
    }

    #[test]
    #[cfg(not(target_family = "wasm"))]
    fn as_many_threads_as_are_asked_for_share_the_work() {
        let (ids, sum) = shared_sum(3, Builder::new);
        assert!(ids.len() == 3 && !ids.contains(&thread::current().id()), "{ids:?}");
        assert_eq!(sum, 5050);
    }

    // No address space has room for such a stack; on 32 bits none that can be asked for is large enough.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn where_no_thread_starts_the_calling_one_does_the_work() {
        let too_large = || Builder::new().stack_size(1 << 60);
        assert_eq!(shared_sum(3, too_large), ([thread::current().id()].to_vec(), 5050));
    }

    #[test]
    #[cfg(panic = "unwind")]
    fn a_panic_is_returned_wherever_it_was() {
        for threads in [1, 2] {
            let outcomes = run(threads, || panic!("on purpose"));
            assert!(outcomes.len() == threads && outcomes.iter().all(Result::<(), _>::is_err));
        }
    }
}
