//! What every picture of results is made of: numbers as people read them, and a pen for SVG.

pub mod number;
pub mod svg;
