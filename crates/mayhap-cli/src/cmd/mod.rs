//! One command, one file: its arguments and its `run`.

pub(crate) mod add;
pub(crate) mod advise;
pub(crate) mod build;
pub(crate) mod calc;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod dedup;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod families;
pub(crate) mod fold;
pub(crate) mod hash;
pub(crate) mod info;
pub(crate) mod label;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod remove;
pub(crate) mod sort;
pub(crate) mod test;
