//! Nothing: the package is its test.
#![no_std]
