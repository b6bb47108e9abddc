//! Accounts of fraudsters, 10 million at 0.001%: `cargo run --release -p mayhap-examples --bin fraud_accounts [ACCOUNTS]`
//!
//! Every payment asks whether its account is on the list. 0.001% is one honest account in 100,000 that is looked at for
//! nothing: 23.96 bits and 17 probes for each account on the list, whatever the accounts are.

use std::error::Error;

use mayhap::{Bloom, Spec, math};
use mayhap_eval::{ABSENT, SplitMix64};
use mayhap_examples::{agrees, keys_or};

const FPR: f64 = 0.001 / 100.0;
const MIB: f64 = (1 << 20) as f64;

fn account(index: u64) -> u64 {
    SplitMix64::at(4, index)
}

fn main() -> Result<(), Box<dyn Error>> {
    let accounts = keys_or(10_000_000)?;

    // What it takes is known before anything is built.
    let plan = Spec::sized(10_000_000, FPR).bloom()?;
    println!("planned for 10000000 accounts");
    let mib = format!("{:.2}", plan.bits as f64 / 8.0 / MIB);
    println!("  MiB: {mib}");
    println!("  probes: {}", plan.probes);
    println!("  least bits per account of any filter: {:.2}", math::lower_bound_bits(1.0, FPR));
    assert_eq!((mib.as_str(), plan.probes), ("28.57", 17));

    let mut fraudulent = Bloom::new(accounts, FPR)?;
    fraudulent.extend((0..accounts).map(account));
    println!("built for {accounts} accounts");
    println!("  bits: {}", fraudulent.bits());
    println!("  bits per account: {:.2}", fraudulent.bits() as f64 / accounts as f64);
    println!("  MiB: {:.2}", fraudulent.bits() as f64 / 8.0 / MIB);
    println!("  probes: {}", fraudulent.probes());
    println!("  share of bits set: {:.4}", fraudulent.fill());

    let missed = (0..accounts).filter(|&index| !fraudulent.contains(account(index))).count();
    println!("  fraudsters missed: {missed}");
    assert_eq!(missed, 0);

    let honest = fraudulent.measure_fpr((ABSENT..ABSENT + 10_000_000).map(account));
    println!("honest accounts: {}", honest.trials);
    println!(
        "  looked at for nothing: {}, expected {:.0}",
        honest.hits,
        fraudulent.fpr() * honest.trials as f64
    );
    assert!(agrees(honest.hits, honest.trials, fraudulent.fpr_at_capacity()));
    Ok(())
}
